from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np

from speech_to_speech.audio.wav import write_wav
from speech_to_speech.client.audio_device import Block
from speech_to_speech.client.file_device import FileDevice

TONE = b"\x00\x10" * 480
SILENCE = bytes(960)


class FakeTime:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


def device_of(samples: np.ndarray, time: FakeTime | None = None) -> FileDevice:
    time = time or FakeTime()
    return FileDevice(samples, clock=time.clock, sleep=time.sleep)


def blocks_of(
    device: FileDevice, count: int, between: Callable[[int], Awaitable[None] | None] = lambda _: None
) -> list[Block]:
    """The first `count` blocks; `between` is called with each one's index."""

    async def collect() -> list[Block]:
        blocks = []
        async for block in device.blocks():
            blocks.append(block)
            between(len(blocks) - 1)
            if len(blocks) == count:
                break
        return blocks

    return asyncio.run(collect())


def test_the_file_comes_in_blocks_of_20_ms_and_then_silence() -> None:
    samples = np.full(480 + 100, 0.125, np.float32)
    captured = [block.captured for block in blocks_of(device_of(samples), 3)]
    assert captured == [TONE, TONE[:200] + bytes(760), SILENCE]


def test_a_block_comes_when_its_last_sample_would_have_been_heard() -> None:
    time = FakeTime()
    blocks_of(device_of(np.zeros(0, np.float32), time), 3)
    assert time.slept == [0.02, 0.02, 0.02]


def test_after_a_delay_the_blocks_catch_up() -> None:
    time = FakeTime()

    def stumble(index: int) -> None:
        if index == 0:
            time.now += 0.05

    blocks_of(device_of(np.zeros(0, np.float32), time), 5, stumble)
    assert time.slept == [0.02, 0.0, 0.0, 0.01, 0.02]


def test_the_end_of_the_input_is_told() -> None:
    device = device_of(np.zeros(960, np.float32))
    ended: list[float | None] = []
    blocks_of(device, 4, lambda _: ended.append(device.input_ended_ms))
    assert ended == [None, 0.0, 20.0, 40.0]


def test_what_is_played_comes_out_block_by_block_and_is_counted() -> None:
    device = device_of(np.zeros(0, np.float32))
    device.play(TONE + TONE[:480])
    assert (device.pending_ms, device.played_ms) == (30.0, 0.0)
    played = [block.played for block in blocks_of(device, 3)]
    assert played == [TONE, TONE[:480] + bytes(480), SILENCE]
    assert (device.pending_ms, device.played_ms) == (0.0, 30.0)


def test_a_flush_drops_what_was_not_played() -> None:
    device = device_of(np.zeros(0, np.float32))
    device.play(TONE * 3)
    played = [block.played for block in blocks_of(device, 2, lambda _: device.flush())]
    assert played == [TONE, SILENCE]
    assert (device.pending_ms, device.played_ms) == (0.0, 20.0)


def test_a_file_of_another_rate_is_converted(tmp_path: Path) -> None:
    path = tmp_path / "question.wav"
    write_wav(path, np.full(16_000, 0.1, np.float32), 16_000)
    device = FileDevice.open(path)
    assert len(device._pcm) == 24_000 * 2

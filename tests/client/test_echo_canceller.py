"""The assistant's voice leaks from the speaker into the microphone through a room; the user speaks into it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from importlib.resources import files

import numpy as np
import pytest

from speech_to_speech.arguments_classes import VADArguments
from speech_to_speech.audio.pcm import pcm16_to_samples, samples_to_pcm16
from speech_to_speech.audio.resampling import resample
from speech_to_speech.audio.wav import read_wav
from speech_to_speech.client.audio_device import BLOCK_BYTES, RATE, AudioDevice, Block
from speech_to_speech.client.echo_canceller import (
    EchoCancelledDevice,
    EchoCanceller,
    HalfDuplexDevice,
    without_echo,
)
from speech_to_speech.client.file_device import FileDevice
from speech_to_speech.stage_types import Samples
from speech_to_speech.VAD.silero import SileroVAD

ECHO_REDUCTION_DB = 20.0
"""Measured: 23 dB (echo 20 dB below the voice) to 32 dB (12 dB below), down to the room's own noise."""

NEAR_END_LOSS_DB = 6.0
"""Measured: 1 to 5 dB while both speak, the more the louder the echo."""

HEARD_SHARE = 0.1
"""Of the frames in which the detector hears speech in the echo, those in which it still may. Measured: none, except
six of 110 once in 40 runs with other sentences."""

ROOM_NOISE = 0.0005
LEAD_S = 0.3


@pytest.fixture(scope="module")
def question() -> Samples:
    """The packaged question, which Piper speaks, without the silence around it."""
    recording = read_wav(str(files("speech_to_speech.client") / "assets" / "question.wav"), RATE)
    return recording[RATE * 3 // 10 : -RATE // 10]


@pytest.fixture(scope="module")
def reply(question: Samples) -> Samples:
    """What the assistant says: about 5 s."""
    return np.concatenate((question, question, question))


@pytest.fixture(scope="module")
def user(question: Samples) -> Samples:
    """Another voice: the same words, slower and a third lower."""
    return resample(question, 4, 5) * np.float32(0.5)


@pytest.fixture(scope="module")
def vad() -> SileroVAD:
    return SileroVAD.load(VADArguments(), threads=1)


def at(samples: Samples, second: float, length: int) -> Samples:
    """`samples` beginning at `second`, in silence of `length` samples."""
    placed = np.zeros(length, np.float32)
    start = round(second * RATE)
    part = samples[: length - start]
    placed[start : start + len(part)] = part
    return placed


def through_room(played: Samples, delay_ms: int, attenuation_db: float) -> Samples:
    """Direct sound and 150 ms of reverberation."""
    tail = np.arange(RATE * 15 // 100)
    response = np.random.default_rng(1).standard_normal(len(tail)) * np.exp(-tail / (0.03 * RATE))
    response[0] = 3.0
    response *= 10 ** (-attenuation_db / 20) / np.sqrt(np.sum(response**2))
    delay = RATE * delay_ms // 1000
    echo = np.convolve(played, response)[: len(played) - delay]
    return np.concatenate((np.zeros(delay), echo)).astype(np.float32)


def cancelled(captured: Samples, played: Samples) -> Samples:
    canceller = EchoCanceller()
    captured_pcm, played_pcm = samples_to_pcm16(captured), samples_to_pcm16(played)
    clean = b"".join(
        canceller.cancel(captured_pcm[start : start + BLOCK_BYTES], played_pcm[start : start + BLOCK_BYTES])
        for start in range(0, len(captured_pcm), BLOCK_BYTES)
    )
    return pcm16_to_samples(clean)


def level_db(samples: Samples) -> float:
    return float(10 * np.log10(np.mean(np.square(samples, dtype=np.float64)) + 1e-12))


def voiced_frames(samples: Samples, vad: SileroVAD) -> int:
    """32 ms frames in which the server's own detector hears speech."""
    heard = resample(samples, RATE, 16_000)
    state = [vad.new_state()]
    starts = range(0, len(heard) - 511, 512)
    return sum(float(vad.detect(heard[None, start : start + 512], state)[0]) > 0.5 for start in starts)


@pytest.mark.parametrize(("delay_ms", "attenuation_db"), [(40, 12.0), (80, 16.0), (120, 20.0)])
def test_the_echo_goes_and_the_user_stays(
    reply: Samples, user: Samples, vad: SileroVAD, delay_ms: int, attenuation_db: float
) -> None:
    length = RATE * 7 // BLOCK_BYTES * BLOCK_BYTES
    interruption = len(reply) / RATE - 1.0  # the user falls into the assistant's last word
    played = at(reply, LEAD_S, length)
    near = at(user, interruption, length)
    noise = np.random.default_rng(0).standard_normal(length).astype(np.float32) * np.float32(ROOM_NOISE)
    captured = through_room(played, delay_ms, attenuation_db) + near + noise
    clean = cancelled(captured, played)

    echo_only = slice(round((LEAD_S + 1.0) * RATE), round(interruption * RATE))
    assert level_db(captured[echo_only]) - level_db(clean[echo_only]) >= ECHO_REDUCTION_DB

    both = slice(round(interruption * RATE), round(interruption * RATE) + len(user))
    assert abs(level_db(near[both]) - level_db(clean[both])) <= NEAR_END_LOSS_DB

    before = slice(0, round(interruption * RATE))
    in_echo = voiced_frames(captured[before], vad)
    assert in_echo > 50
    assert voiced_frames(clean[before], vad) <= HEARD_SHARE * in_echo
    assert voiced_frames(clean[both], vad) >= 0.7 * voiced_frames(near[both], vad)


def test_without_a_reply_the_microphone_passes_through(user: Samples) -> None:
    captured = user[: len(user) // BLOCK_BYTES * BLOCK_BYTES]
    clean = cancelled(captured, np.zeros_like(captured))
    assert abs(level_db(captured) - level_db(clean)) < 1.0


class TapedDevice(FileDevice):
    """Gives blocks that a test wrote down."""

    def __init__(self, blocks: list[Block]) -> None:
        super().__init__(np.zeros(0, np.float32))
        self._taped = blocks

    async def blocks(self) -> AsyncIterator[Block]:
        for block in self._taped:
            yield block


VOICE = b"\x01\x02" * (BLOCK_BYTES // 2)
SILENCE = bytes(BLOCK_BYTES)


def captured_by(device: AudioDevice) -> list[bytes]:
    async def collect() -> list[bytes]:
        return [block.captured async for block in device.blocks()]

    return asyncio.run(collect())


def test_half_duplex_is_deaf_while_it_plays_and_400_ms_after() -> None:
    taped = [Block(VOICE, SILENCE)] * 2 + [Block(VOICE, VOICE)] * 3 + [Block(VOICE, SILENCE)] * 25
    assert captured_by(HalfDuplexDevice(TapedDevice(taped))) == [VOICE] * 2 + [SILENCE] * (3 + 20) + [VOICE] * 5


def test_both_are_otherwise_the_device_they_wrap() -> None:
    for wrapper in (HalfDuplexDevice, EchoCancelledDevice):
        inner = TapedDevice([])
        device = wrapper(inner)
        device.play(VOICE * 2)
        assert (device.pending_ms, device.played_ms, device.input_ended_ms) == (40.0, 0.0, 0.0)
        device.flush()
        assert inner.pending_ms == 0.0


def test_a_device_is_echo_cancelled_where_livekit_is_installed() -> None:
    notices: list[str] = []
    assert isinstance(without_echo(TapedDevice([]), notices.append), EchoCancelledDevice)
    assert notices == []


def test_without_livekit_it_is_half_duplex_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "livekit", None)
    notices: list[str] = []
    assert isinstance(without_echo(TapedDevice([]), notices.append), HalfDuplexDevice)
    (notice,) = notices
    assert "pip install 'speech-to-speech-server[local]'" in notice
    assert "--headphones" in notice

"""A recording in place of the microphone, and nobody listening: needs no sound card."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from speech_to_speech.audio.pcm import samples_to_pcm16
from speech_to_speech.audio.wav import read_wav
from speech_to_speech.client.audio_device import BLOCK_BYTES, BLOCK_MS, RATE, AudioDevice, Block
from speech_to_speech.client.playback_buffer import PlaybackBuffer
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.stage_types import Samples


class FileDevice(AudioDevice):
    """Captures `samples` (24 kHz) at the pace of a microphone, then silence; plays at the pace of a speaker.

    `clock` and `sleep` are those of real time unless a test brings its own.
    """

    def __init__(
        self,
        samples: Samples,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._pcm = samples_to_pcm16(samples)
        self._clock = clock
        self._sleep = sleep
        self._playback = PlaybackBuffer()
        self._captured_blocks = 0

    @classmethod
    def open(cls, path: str | Path) -> FileDevice:
        """Any WAV file, converted to 24 kHz. Raises `ConfigurationError` naming the file."""
        samples = read_wav(path, RATE)
        if not samples.any():
            raise ConfigurationError(f"--input {path}: there is no sound in it, only silence")
        return cls(samples)

    async def blocks(self) -> AsyncIterator[Block]:
        started = self._clock()
        while True:
            self._captured_blocks += 1
            due = started + self._captured_blocks * BLOCK_MS / 1000
            await self._sleep(max(0.0, due - self._clock()))
            played = self._playback.take(BLOCK_BYTES)
            yield Block(self._capture(played), played)

    def play(self, pcm: bytes) -> None:
        self._playback.play(pcm)

    def flush(self) -> None:
        self._playback.flush()

    @property
    def played_ms(self) -> float:
        return self._playback.taken_ms

    @property
    def pending_ms(self) -> float:
        return self._playback.queued_ms

    @property
    def input_ended_ms(self) -> float | None:
        since = self._captured_blocks * BLOCK_MS - len(self._pcm) * BLOCK_MS / BLOCK_BYTES
        return since if since >= 0 else None

    def _capture(self, _played: bytes) -> bytes:
        """The next block of the input; `_played` is what the room hears at the same time."""
        end = self._captured_blocks * BLOCK_BYTES
        return self._pcm[end - BLOCK_BYTES : end].ljust(BLOCK_BYTES, b"\0")

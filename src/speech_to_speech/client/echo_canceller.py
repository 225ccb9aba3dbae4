"""Keeps the assistant from hearing itself when microphone and speaker share a room."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import Any

from speech_to_speech.client.audio_device import BLOCK_MS, RATE, AudioDevice, Block
from speech_to_speech.errors import MissingDependencyError

_FRAME_SAMPLES = RATE // 100
"""WebRTC's audio processing takes 10 ms at a time."""

ROOM_MS = 400
"""How long after the speaker was given silence a half-duplex microphone stays closed: the path through both drivers and
the air (220 ms measured), and the room's reverberation."""


class EchoCanceller:
    """WebRTC's adaptive canceller (AEC3). It finds the delay between speaker and microphone by itself.

    Noise suppression and gain control stay off: recognition is trained on sound as it is.
    """

    def __init__(self) -> None:
        """Raises `MissingDependencyError` where livekit is not installed."""
        try:
            from livekit import rtc
        except (ImportError, OSError) as error:  # OSError: its native library does not load here
            raise MissingDependencyError("livekit", "local") from error
        self._frame: Any = rtc.AudioFrame
        self._processing: Any = rtc.AudioProcessingModule(echo_cancellation=True)

    def cancel(self, captured: bytes, played: bytes) -> bytes:
        """`captured` without the echo of `played`. Both are the same whole number of 10 ms frames, one moment each."""
        clean = []
        for start in range(0, len(captured), _FRAME_SAMPLES * 2):
            frame = slice(start, start + _FRAME_SAMPLES * 2)
            self._processing.process_reverse_stream(self._frame(bytearray(played[frame]), RATE, 1, _FRAME_SAMPLES))
            self._processing.set_stream_delay_ms(0)
            near = self._frame(bytearray(captured[frame]), RATE, 1, _FRAME_SAMPLES)
            self._processing.process_stream(near)
            clean.append(bytes(near.data))
        return b"".join(clean)


class _FilteredDevice(AudioDevice):
    """Another device, with something done to what its microphone hears."""

    def __init__(self, device: AudioDevice) -> None:
        self._device = device

    @abstractmethod
    def _filtered(self, block: Block) -> bytes:
        """What is let through of the block's captured audio."""

    async def blocks(self) -> AsyncIterator[Block]:
        async for block in self._device.blocks():
            yield Block(self._filtered(block), block.played)

    def play(self, pcm: bytes) -> None:
        self._device.play(pcm)

    def flush(self) -> None:
        self._device.flush()

    @property
    def played_ms(self) -> float:
        return self._device.played_ms

    @property
    def pending_ms(self) -> float:
        return self._device.pending_ms

    @property
    def input_ended_ms(self) -> float | None:
        return self._device.input_ended_ms

    def close(self) -> None:
        self._device.close()


class EchoCancelledDevice(_FilteredDevice):
    """Another device, with the echo of what it plays taken out of what it hears. Both can speak at the same time."""

    def __init__(self, device: AudioDevice) -> None:
        """Raises `MissingDependencyError` where livekit is not installed."""
        super().__init__(device)
        self._canceller = EchoCanceller()

    def _filtered(self, block: Block) -> bytes:
        return self._canceller.cancel(block.captured, block.played)


class HalfDuplexDevice(_FilteredDevice):
    """Another device, deaf while it plays and for `ROOM_MS` after: no echo, and no interrupting the assistant."""

    def __init__(self, device: AudioDevice) -> None:
        super().__init__(device)
        self._deaf_blocks = 0

    def _filtered(self, block: Block) -> bytes:
        if any(block.played):
            self._deaf_blocks = ROOM_MS // BLOCK_MS
        elif self._deaf_blocks:
            self._deaf_blocks -= 1
        else:
            return block.captured
        return bytes(len(block.captured))


def without_echo(device: AudioDevice, notice: Callable[[str], None]) -> AudioDevice:
    """`device` protected from its own echo as well as this installation can; `notice` takes a line for the user."""
    try:
        return EchoCancelledDevice(device)
    except MissingDependencyError as missing:
        notice(f"the microphone is closed while the assistant speaks: {missing} (or use headphones and --headphones)")
        return HalfDuplexDevice(device)

"""What a conversation needs of a microphone and a speaker: 24 kHz mono, 16 bit, in blocks of 20 ms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass

RATE = 24_000
"""Samples per second, both ways: the Realtime API's PCM format."""

BLOCK_MS = 20
BLOCK_BYTES = RATE * BLOCK_MS // 1000 * 2


@dataclass(frozen=True, slots=True)
class Block:
    """20 ms: what the microphone heard, and what the speaker was playing meanwhile (silence included)."""

    captured: bytes
    played: bytes


class AudioDevice(ABC):
    """A microphone and a speaker on one clock."""

    @abstractmethod
    def blocks(self) -> AsyncIterator[Block]:
        """Every block as it happens, in real time, without end. May be iterated once.

        Raises `SpeechToSpeechError` when the hardware fails.
        """

    @abstractmethod
    def play(self, pcm: bytes) -> None:
        """Queue audio behind what is queued already."""

    @abstractmethod
    def flush(self) -> None:
        """Drop what has not been played."""

    @property
    @abstractmethod
    def played_ms(self) -> float:
        """Audio that has left the speaker since the start; silence between replies does not count."""

    @property
    @abstractmethod
    def pending_ms(self) -> float:
        """Audio that is queued and not yet heard."""

    @property
    def input_ended_ms(self) -> float | None:
        """How long ago the last of the input was captured; None while there is more. A microphone never ends."""
        return None

    def close(self) -> None:
        """Let go of the hardware."""
        return None

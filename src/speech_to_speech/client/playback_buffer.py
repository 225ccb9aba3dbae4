"""Audio on its way to the speaker."""

from __future__ import annotations

import threading

from speech_to_speech.client.audio_device import RATE

_BYTES_PER_MS = RATE * 2 / 1000


class PlaybackBuffer:
    """Takes audio in pieces of any size and gives it out in blocks. Safe to use from an audio thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queued = bytearray()
        self._taken_bytes = 0

    def play(self, pcm: bytes) -> None:
        """Queue audio behind what is queued already."""
        with self._lock:
            self._queued += pcm

    def flush(self) -> None:
        """Drop what was not taken."""
        with self._lock:
            self._queued.clear()

    def take(self, size: int) -> bytes:
        """The next `size` bytes, with silence where nothing is queued."""
        with self._lock:
            block = bytes(self._queued[:size])
            del self._queued[:size]
            self._taken_bytes += len(block)
        return block.ljust(size, b"\0")

    @property
    def taken_ms(self) -> float:
        """Audio taken since the start, silence not counted."""
        with self._lock:
            return self._taken_bytes / _BYTES_PER_MS

    @property
    def queued_ms(self) -> float:
        """Audio waiting to be taken."""
        with self._lock:
            return len(self._queued) / _BYTES_PER_MS

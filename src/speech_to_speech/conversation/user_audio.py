"""The session's incoming audio, kept as long as somebody may still ask for it."""

from __future__ import annotations

from math import sqrt

import numpy as np

from speech_to_speech.stage_types import RECOGNITION_RATE, VAD_FRAME_SAMPLES, Samples

CLIENT_RATE = 24_000
"""Sample rate in Hz of the audio at the protocol's edge."""

_MOST_UNUSED = 8
"""The array is let go when it is this much longer than what is kept: after a long turn."""


def to_ms(samples: int) -> int:
    """Milliseconds of `samples` at the recognition rate, rounded down."""
    return samples * 1000 // RECOGNITION_RATE


def from_ms(milliseconds: float) -> int:
    """Samples at the recognition rate in `milliseconds`."""
    return round(milliseconds * RECOGNITION_RATE / 1000)


class UserAudio:
    """Two views of one recording: 16 kHz float32 for the models, 24 kHz PCM16 for the items.

    Positions are samples at 16 kHz from the start of the session's audio. `start` moves forward as old audio is
    dropped; asking for dropped audio returns what is left of it.
    """

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self._recording = np.zeros(0, np.float32)
        self._recording_start = 0
        self._pcm = bytearray()
        self._pcm_start = 0
        self._framed = 0

    @property
    def frame_lacks(self) -> int:
        """Samples until the next VAD frame is complete."""
        return self._framed + VAD_FRAME_SAMPLES - self.end

    def append(self, pcm: bytes, samples: Samples) -> list[tuple[int, Samples]]:
        """Add the same stretch in both forms; returns the VAD frames it completed as (index, samples)."""
        self._pcm += pcm
        if len(samples):
            first = self.end - self._recording_start
            if first + len(samples) > len(self._recording):
                self._make_room(len(samples))
                first = self.end - self._recording_start
            self._recording[first : first + len(samples)] = samples
            self.end += len(samples)
        return self._new_frames()

    def samples(self, start: int, end: int) -> Samples:
        """16 kHz audio of `[start, end)`, clipped to what is kept. A view; what it shows never changes."""
        first, last = max(start, self.start), min(end, self.end)
        return self._recording[first - self._recording_start : max(first, last) - self._recording_start]

    def level(self, start: int, end: int) -> float:
        """Root mean square of `[start, end)`; 1.0 is full scale."""
        samples = self.samples(start, end)
        return sqrt(np.dot(samples, samples) / len(samples)) if len(samples) else 0.0

    def pcm(self, start: int, end: int) -> bytes:
        """24 kHz PCM16 of `[start, end)` (16 kHz positions), clipped to what is kept."""
        first, last = self._pcm_index(start), self._pcm_index(end)
        return bytes(self._pcm[max(0, first - self._pcm_start) : max(0, last - self._pcm_start)])

    def forget_before(self, position: int) -> None:
        """Drop audio before `position`, except what is not yet cut into VAD frames."""
        self.start = max(self.start, min(position, self._framed))
        cut = self._pcm_index(self.start) - self._pcm_start
        if cut > 0:
            del self._pcm[:cut]
            self._pcm_start += cut
        if len(self._recording) > _MOST_UNUSED * (self.end - self.start) + RECOGNITION_RATE:
            self._make_room(0)

    def _make_room(self, count: int) -> None:
        """A new array for what is kept and as much again; the old one stays as it is for the views of it."""
        kept = self.samples(self.start, self.end)
        self._recording = np.empty(2 * (len(kept) + count), np.float32)
        self._recording[: len(kept)] = kept
        self._recording_start = self.start

    def _new_frames(self) -> list[tuple[int, Samples]]:
        frames = []
        while self.end - self._framed >= VAD_FRAME_SAMPLES:
            frame = self.samples(self._framed, self._framed + VAD_FRAME_SAMPLES)
            frames.append((self._framed // VAD_FRAME_SAMPLES, frame))
            self._framed += VAD_FRAME_SAMPLES
        return frames

    @staticmethod
    def _pcm_index(position: int) -> int:
        return 2 * (position * CLIENT_RATE // RECOGNITION_RATE)

"""Pairs what a speaker plays with what a microphone hears, when each runs on a clock of its own."""

from __future__ import annotations

import threading
from collections import deque

from speech_to_speech.client.audio_device import BLOCK_BYTES

WINDOW_BLOCKS = 50
"""Played blocks (1 s) over which a surplus must last to be dropped: longer than a microphone is seen to stall."""


class SpeakerReference:
    """Blocks go in as they are played and come out as others are captured, one for one. Safe between two threads.

    A microphone that stalls and then delivers what it held finds the blocks of that time waiting. A speaker that runs
    dry leaves silence, as in the room. What is lost on one side, and clocks that differ, would shift the pairs for
    good: of the blocks that wait at all times, those beyond `slack` are dropped.
    """

    def __init__(self, slack: int) -> None:
        """`slack` in blocks: at least the jitter between the two threads, at most what the speaker's hardware holds,
        since no block may come out after its echo."""
        self._slack = slack
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._capturing = False
        self._fewest = 0
        self._window = 0

    def played(self, block: bytes) -> None:
        """The speaker took `block`."""
        with self._lock:
            self._waiting.append(block)
            self._fewest = len(self._waiting) if self._window == 0 else min(self._fewest, len(self._waiting))
            self._window += 1
            if self._window == WINDOW_BLOCKS:
                self._window = 0
                self._drop(self._fewest - self._slack)

    def next(self) -> bytes:
        """What was played while the next captured block was."""
        with self._lock:
            if not self._capturing:
                self._capturing = True
                self._drop(len(self._waiting) - self._slack)
            return self._waiting.popleft() if self._waiting else bytes(BLOCK_BYTES)

    def _drop(self, count: int) -> None:
        for _ in range(count):
            self._waiting.popleft()

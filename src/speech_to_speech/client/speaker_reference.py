"""Pairs what a speaker plays with what a microphone hears, when each runs on a clock of its own."""

from __future__ import annotations

import threading
from collections import deque

from speech_to_speech.client.audio_device import BLOCK_BYTES

SLACK_BLOCKS = 2
"""Blocks that may wait at all times: the jitter between the two callbacks."""

WINDOW_BLOCKS = 250
"""Blocks (5 s) in which no fewer than the slack may wait before the rest is dropped as lost in the microphone."""


class SpeakerReference:
    """Blocks go in as they are played and come out as others are captured, one for one. Safe between two threads.

    A microphone that stalls and then delivers what it held finds the blocks of that time waiting. A speaker that runs
    dry leaves silence, as in the room. Captured audio that was lost, and clocks that differ, shift the pairs: a surplus
    that stays is dropped.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._fewest = SLACK_BLOCKS
        self._window = 0

    def played(self, block: bytes) -> None:
        """The speaker took `block`."""
        with self._lock:
            self._waiting.append(block)

    def next(self) -> bytes:
        """What was played while the next captured block was."""
        with self._lock:
            self._drop_surplus()
            return self._waiting.popleft() if self._waiting else bytes(BLOCK_BYTES)

    def _drop_surplus(self) -> None:
        self._window += 1
        self._fewest = min(self._fewest, len(self._waiting)) if self._window > 1 else len(self._waiting)
        if self._window == WINDOW_BLOCKS:
            self._window = 0
            for _ in range(self._fewest - SLACK_BLOCKS):
                self._waiting.popleft()

"""What the workers of all stages share: a request's cancellation, and a session's way to its results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from speech_to_speech.stage_types import StageResult

Deliver: TypeAlias = Callable[[StageResult], None]
"""Takes a result from any thread to the session that asked for it."""


class Cancellations:
    """The tokens of one session whose results are no longer wanted. Tokens only grow and each is used once."""

    def __init__(self) -> None:
        self._cancelled: set[int] = set()
        self._closed = False
        self._lock = threading.Lock()

    def cancel(self, token: int) -> None:
        """The result of `token` is not wanted."""
        with self._lock:
            self._cancelled.add(token)

    def close(self) -> None:
        """Nothing is wanted any more."""
        self._closed = True

    def is_cancelled(self, token: int) -> bool:
        """Asked by workers between their steps."""
        return self._closed or token in self._cancelled

    def forget(self, token: int) -> None:
        """The work of `token` has ended one way or the other."""
        with self._lock:
            self._cancelled.discard(token)

"""Watches the event loop: whatever blocks it delays every conversation."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

INTERVAL_S = 0.1
REPORT_OVER_MS = 20.0


class LoopMonitor:
    """Measures by how much a timer comes late. `observe` is told each lateness, in ms."""

    def __init__(self, interval_s: float = INTERVAL_S, observe: Callable[[float], None] | None = None) -> None:
        self.longest_block_ms = 0.0
        self._interval_s = interval_s
        self._observe = observe
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Watch the running loop."""
        self._schedule(asyncio.get_running_loop())

    def stop(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        due = time.perf_counter() + self._interval_s
        self._timer = loop.call_later(self._interval_s, self._look, loop, due)

    def _look(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        late_ms = max(0.0, (time.perf_counter() - due) * 1000)
        self.longest_block_ms = max(self.longest_block_ms, late_ms)
        if late_ms > REPORT_OVER_MS:
            logger.debug("the event loop was blocked for %.0f ms", late_ms)
        if self._observe is not None:
            self._observe(late_ms)
        self._schedule(loop)

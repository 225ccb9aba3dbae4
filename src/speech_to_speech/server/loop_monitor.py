"""Watches the event loop: whatever blocks it delays every conversation."""

from __future__ import annotations

import asyncio
import logging

logger = logging.getLogger(__name__)

INTERVAL_S = 0.1
REPORT_OVER_MS = 20.0


class LoopMonitor:
    """Measures by how much a timer comes late."""

    def __init__(self) -> None:
        self.longest_block_ms = 0.0
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
        self._timer = loop.call_later(INTERVAL_S, self._look, loop, loop.time() + INTERVAL_S)

    def _look(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        late_ms = (loop.time() - due) * 1000
        self.longest_block_ms = max(self.longest_block_ms, late_ms)
        if late_ms > REPORT_OVER_MS:
            logger.debug("the event loop was blocked for %.0f ms", late_ms)
        self._schedule(loop)

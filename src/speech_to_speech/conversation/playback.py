"""What the listener has heard of the audio that was sent."""

from __future__ import annotations


class PlaybackClock:
    """Models a client that plays what it gets, in order and in real time, silent while it has nothing.

    Times are seconds on the session's clock; durations and positions are ms of audio since `reset`.
    """

    def __init__(self) -> None:
        self.sent_ms = 0.0
        self._ends_at = 0.0

    def reset(self) -> None:
        """Start to count anew: the next audio belongs to another item."""
        self.sent_ms = 0.0

    def send(self, duration_ms: float, now: float) -> None:
        """`duration_ms` of audio went out."""
        self._ends_at = max(self._ends_at, now) + duration_ms / 1000
        self.sent_ms += duration_ms

    def flush(self, now: float) -> None:
        """The client threw away what it had not played."""
        self.sent_ms = self.heard_ms(now)
        self._ends_at = min(self._ends_at, now)

    def ahead_ms(self, now: float) -> float:
        """Audio the client has got and not yet played."""
        return max(0.0, self._ends_at - now) * 1000

    def heard_ms(self, now: float) -> float:
        """How much of the audio sent since `reset` has been played."""
        return max(0.0, self.sent_ms - self.ahead_ms(now))

    @property
    def ends_at(self) -> float:
        """When the client runs out of what was sent."""
        return self._ends_at

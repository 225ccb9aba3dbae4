"""Where a listener hears the assistant stall."""

from __future__ import annotations

from dataclasses import dataclass, field

from speech_to_speech.client.audio_device import BLOCK_MS


@dataclass(frozen=True, slots=True)
class Gap:
    """The speaker had nothing to play for `duration_ms`, from `start_ms` on, in the middle of an item."""

    start_ms: float
    duration_ms: float


@dataclass(slots=True)
class PlaybackGaps:
    """Finds the gaps inside items, from what comes and what the speaker lacks."""

    found: list[Gap] = field(default_factory=list)
    _item: str = ""
    _silence: Gap | None = None
    _stopped: str = ""
    """The item that was talked over: what still comes of it is not played."""

    def delta(self, item: str) -> None:
        """More audio of `item` came."""
        if item == self._stopped:
            return
        if item == self._item and self._silence is not None:
            self.found.append(self._silence)
        self._item, self._silence = item, None

    def starved(self, ms: float, at_ms: float) -> None:
        """The speaker lacked the last `ms` of audio of the block that began at `at_ms`."""
        if self._item:
            before = self._silence or Gap(at_ms + BLOCK_MS - ms, 0.0)
            self._silence = Gap(before.start_ms, before.duration_ms + ms)

    def flushed(self, item: str, *, complete: bool) -> None:
        """`item` was talked over; unless it was `complete`, a silence at its end was a gap too."""
        if self._silence is not None and not complete:
            self.found.append(self._silence)
        self._item, self._silence, self._stopped = "", None, item

"""One record per turn: when each stage had done its part."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class TurnTimeline:
    """Times in seconds on the session's clock; None for what did not happen.

    `last_voiced` is the end of the user's last voiced sample (of a text turn: the request's arrival).
    Work done before the end of the turn was certain and then thrown away is counted in `discarded_…`.
    """

    last_voiced: float | None = None
    turn_end: float | None = None
    transcript: float | None = None
    first_token: float | None = None
    first_text: float | None = None
    first_audio: float | None = None
    first_audible: float | None = None
    playback_end: float | None = None
    discarded_transcripts: int = 0
    discarded_replies: int = 0
    required_silence_ms: float | None = None
    turn_end_probability: float | None = None

    def as_milliseconds(self) -> dict[str, float | int | None]:
        """Every time as ms after `last_voiced`; counts and probabilities as they are."""
        zero = self.last_voiced or 0.0
        record: dict[str, float | int | None] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _TIMES and value is not None:
                record[f"{field.name}_ms"] = round((value - zero) * 1000, 1)
            elif field.name not in _TIMES:
                record[field.name] = value
        return record

    def forget_reply(self) -> None:
        """The reply was thrown away: its times are not those of the turn."""
        self.first_token = self.first_text = self.first_audio = None

    def mark(self, name: str, now: float) -> None:
        """Set time `name` unless it is set already: the first occurrence counts."""
        if getattr(self, name) is None:
            setattr(self, name, now)


_TIMES = frozenset(
    {"turn_end", "transcript", "first_token", "first_text", "first_audio", "first_audible", "playback_end"}
    | {"last_voiced"}
)

"""A turn's timeline as text: when each step was done, from the user's last word to the first sound."""

from __future__ import annotations

from collections.abc import Mapping

Timeline = Mapping[str, float | int | None]
"""`response.done`'s `timeline`: ms after the user's last voiced sample."""

_STEPS = (
    ("end of turn decided", "turn_end_ms"),
    ("transcript", "transcript_ms"),
    ("first token", "first_token_ms"),
    ("first audio made", "first_audio_ms"),
    ("first audible sample", "first_audible_ms"),
)
_BAR_WIDTH = 44
_NAME_WIDTH = max(len(name) for name, _ in _STEPS)

_IN_THE_PAUSE = "-"
_AFTER_IT = "#"


def waterfall(timeline: Timeline) -> str:
    """A heading, and one line per step that happened: name, bar from the last word to its time. At most 80 columns.

    Bars of steps that were done while the pause could still have been one in mid-sentence are dashed.
    "" if the timeline is empty.
    """
    times = {key: value for _, key in _STEPS if (value := timeline.get(key)) is not None}
    if not times:
        return ""
    turn_end = times.get("turn_end_ms", 0.0)
    scale = _BAR_WIDTH / max(1.0, *times.values())
    lines = [f"{_first_sound(timeline) or 'After your last word'}:"]
    for name, key in _STEPS:
        if key in times:
            early = key != "turn_end_ms" and times[key] < turn_end
            bar = (_IN_THE_PAUSE if early else _AFTER_IT) * max(0, round(times[key] * scale))
            lines.append(f"  {name:<{_NAME_WIDTH}}  {bar:<{_BAR_WIDTH}} {times[key]:>5.0f} ms")
    if any(value < turn_end for value in times.values()):
        lines.append(f"  {_IN_THE_PAUSE * 3} done in the pause, before the end of the turn was certain")
    return "\n".join(lines)


def latency(timeline: Timeline) -> str:
    """The turn in one line; "" if nothing sounded."""
    total = _first_sound(timeline)
    steps = [(name, timeline.get(key)) for name, key in _STEPS[:-1]]
    details = ", ".join(f"{name} {value:.0f}" for name, value in steps if value is not None)
    return f"{total} ({details})" if total and details else total


def _first_sound(timeline: Timeline) -> str:
    heard = timeline.get("first_audible_ms")
    return "" if heard is None else f"{heard:.0f} ms from your last word to the first sound"

"""Many verdicts in one table: per kind, real and synthetic voices apart, with 95 % intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from speech_to_speech.bench.scene_results import Result
from speech_to_speech.bench.scenes import KINDS
from speech_to_speech.bench.statistics import Median, Rate, median, rate

ALL = "all"


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """The results of one policy, kind and source ("real" or "synthetic"); times in ms."""

    policy: str
    kind: str
    source: str
    n: int
    voice_to_voice_ms: Median | None
    cut_off: Rate
    late: Rate
    unanswered: Rate
    missed_stops: Rate
    false_stops: Rate
    unwanted_replies: Rate
    last_byte_ms: Median | None
    silence_ms: Median | None
    history_words_off: Median | None
    underruns: Rate
    underrun_ms: float
    holds: int


def rows(results: Sequence[Result]) -> list[Row]:
    """A row for each policy, kind and source there is a result of, and for all kinds together."""
    policies = list(dict.fromkeys(result.policy for result in results))
    found = []
    for kind in (*KINDS, ALL):
        for source in ("real", "synthetic"):
            for policy in policies:
                members = [
                    result
                    for result in results
                    if result.policy == policy and result.real == (source == "real") and kind in (result.kind, ALL)
                ]
                if members:
                    found.append(_row(policy, kind, source, members))
    return found


def as_json(found: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows for a file."""
    return [dataclasses.asdict(row) for row in found]


def table(found: Sequence[Row]) -> str:
    """The rows for people: who waits and is cut off, then what happens while the assistant speaks."""
    turns = [_turn_line(row) for row in found]
    stops = [_stop_line(row) for row in found if row.missed_stops.n or row.false_stops.n or row.unwanted_replies.n]
    return "\n".join(["", _TURNS, *turns, "", *([_STOPS, *stops, ""] if stops else []), _NOTES])


def _row(policy: str, kind: str, source: str, members: Sequence[Result]) -> Row:
    verdicts = [member.verdict for member in members]
    real_stops = [_is_interruption(member) and member.verdict.stopped is not None for member in members]
    other = [member.verdict.stopped for member in members if not _is_interruption(member)]
    return Row(
        policy=policy,
        kind=kind,
        source=source,
        n=len(members),
        voice_to_voice_ms=median([verdict.voice_to_voice_ms for verdict in verdicts]),
        cut_off=rate([verdict.cut_off for verdict in verdicts]),
        late=rate([verdict.late for verdict in verdicts]),
        unanswered=rate([_negated(verdict.answered) for verdict in verdicts]),
        missed_stops=rate([not v.stopped for v, real in zip(verdicts, real_stops, strict=True) if real]),
        false_stops=rate(other),
        unwanted_replies=rate([verdict.unwanted_reply for verdict in verdicts]),
        last_byte_ms=median([v.last_byte_ms for v, real in zip(verdicts, real_stops, strict=True) if real]),
        silence_ms=median([v.silence_ms for v, real in zip(verdicts, real_stops, strict=True) if real]),
        history_words_off=median([verdict.history_words_off for verdict in verdicts]),
        underruns=rate([verdict.underruns > 0 for verdict in verdicts]),
        underrun_ms=sum(verdict.underrun_ms for verdict in verdicts),
        holds=sum(verdict.holds for verdict in verdicts),
    )


def _is_interruption(result: Result) -> bool:
    return result.kind == "interruption"


def _negated(outcome: bool | None) -> bool | None:
    return None if outcome is None else not outcome


_TURNS = (
    f"{'kind':12} {'voices':9} {'policy':8} {'n':>3} {'voice to voice, ms':>19} {'cut off':>18} {'late':>6} "
    f"{'no answer':>9} {'gaps':>6}"
)
_STOPS = (
    f"{'kind':12} {'voices':9} {'policy':8} {'missed':>6} {'false stops':>18} {'last byte, ms':>16} "
    f"{'silent, ms':>16} {'history':>7} {'replies':>7}"
)
_NOTES = (
    "[...]: 95 % interval. late: over 2 s; gaps: scenes with underruns. missed: interruptions ignored; last byte, "
    "silent:\nafter the interruption's onset; history: words off what was heard; replies: to what was no turn."
)


def _who(row: Row) -> str:
    return f"{row.kind:12} {row.source:9} {row.policy:8}"


def _turn_line(row: Row) -> str:
    return (
        f"{_who(row)} {row.n:>3} {_median(row.voice_to_voice_ms):>19} {_interval(row.cut_off):>18} "
        f"{_rate(row.late):>6} {_rate(row.unanswered):>9} {_rate(row.underruns):>6}"
    )


def _stop_line(row: Row) -> str:
    history = "-" if row.history_words_off is None else f"{row.history_words_off.median:.0f}"
    return (
        f"{_who(row)} {_rate(row.missed_stops):>6} {_interval(row.false_stops):>18} {_median(row.last_byte_ms):>16} "
        f"{_median(row.silence_ms):>16} {history:>7} {_rate(row.unwanted_replies):>7}"
    )


def _interval(value: Rate) -> str:
    return f"{_rate(value)} [{value.low:.0%}-{value.high:.0%}]" if value.n else "-"


def _median(value: Median | None) -> str:
    return "-" if value is None else f"{value.median:.0f} [{value.low:.0f}-{value.high:.0f}]"


def _rate(value: Rate) -> str:
    return f"{value.count}/{value.n}" if value.n else "-"

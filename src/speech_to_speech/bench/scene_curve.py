"""Wait against cut-offs: what each policy pays for not interrupting, and the picture of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from speech_to_speech.bench.scene_replay import Replayed, replay
from speech_to_speech.bench.scene_traces import Trace
from speech_to_speech.bench.scenes import Scene
from speech_to_speech.bench.statistics import Median, Rate, median, rate
from speech_to_speech.conversation.turn_detection import SemanticVAD, ServerVAD, TurnDetection
from speech_to_speech.errors import ConfigurationError, MissingDependencyError

HOLDS_MS = (300, 500, 800, 2000)

CURVE_KINDS = ("question", "pause", "trailing", "numbers", "hesitation", "noise")
"""Kinds whose scenes are about the end of a turn."""

POLICIES: dict[str, TurnDetection] = {
    **{f"hold {hold}": ServerVAD(silence_duration_ms=hold) for hold in HOLDS_MS},
    "ours, eager": SemanticVAD(eagerness="high"),
    "ours": SemanticVAD(),
    "ours, patient": SemanticVAD(eagerness="low"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class CurvePoint:
    """One policy on the scenes of one source ("all", "real", "synthetic").

    `wait_ms` (last voiced sample → the reply may be heard) is of the turns that were not cut off, so policies that cut
    more off have it from fewer, easier turns; `unanswered` of those had no reply at all.
    """

    policy: str
    source: str
    cut_off: Rate
    wait_ms: Median | None
    unanswered: int


def curve(traces: Sequence[tuple[Scene, Trace]]) -> list[CurvePoint]:
    """Every policy on the traces, all of them and by source."""
    points = []
    for policy, detection in POLICIES.items():
        replayed = [(scene.real, replay(trace, detection)) for scene, trace in traces]
        for source, wanted in (("all", (True, False)), ("real", (True,)), ("synthetic", (False,))):
            members = [result for real, result in replayed if real in wanted]
            if members:
                points.append(_point(policy, source, members))
    return points


def _point(policy: str, source: str, members: Sequence[Replayed]) -> CurvePoint:
    return CurvePoint(
        policy,
        source,
        rate([member.cut_off for member in members]),
        median([member.wait_ms for member in members]),
        sum(not member.cut_off and member.wait_ms is None for member in members),
    )


def curve_json(points: Sequence[CurvePoint]) -> list[dict[str, Any]]:
    """The points for a file."""
    return [dataclasses.asdict(point) for point in points]


def curve_table(points: Sequence[CurvePoint]) -> str:
    """The points for people."""
    lines = [
        "",
        "replayed: last voiced sample -> the reply may be heard, of turns not cut off",
        f"{'policy':14} {'voices':9} {'wait, ms':>18} {'cut off':>20} {'no reply':>8}",
    ]
    for point in points:
        wait = point.wait_ms
        told = "-" if wait is None else f"{wait.median:.0f} [{wait.low:.0f}-{wait.high:.0f}]"
        cut = f"{point.cut_off.count}/{point.cut_off.n} [{point.cut_off.low:.0%}-{point.cut_off.high:.0%}]"
        lines.append(f"{point.policy:14} {point.source:9} {told:>18} {cut:>20} {point.unanswered:>8}")
    return "\n".join(lines)


def require_matplotlib() -> None:
    """Raises `MissingDependencyError` when no picture can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("matplotlib", "bench") from error


def draw_curve(points: Sequence[CurvePoint], path: Path) -> None:
    """Write the picture: a line through the fixed holds, one through ours, bars of 95 %.

    Raises `ConfigurationError` naming the file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), dpi=120, layout="constrained")
    axes = figure.subplots()
    drawn = [point for point in points if point.source == "all"]
    for label, marker in (("hold", "o"), ("ours", "s")):
        members = [(p, p.wait_ms) for p in drawn if p.policy.startswith(label) and p.wait_ms is not None]
        axes.errorbar(
            [wait.median for _, wait in members],
            [100 * point.cut_off.share for point, _ in members],
            xerr=_reaches([(wait.low, wait.median, wait.high) for _, wait in members], 1),
            yerr=_reaches([(p.cut_off.low, p.cut_off.share, p.cut_off.high) for p, _ in members], 100),
            marker=marker,
            capsize=2,
            linewidth=1,
            label={"hold": "fixed hold", "ours": "ours"}[label],
        )
        for point, wait in members:
            place = (wait.median, 100 * point.cut_off.share)
            axes.annotate(point.policy, place, textcoords="offset points", xytext=(6, 6), fontsize=8)
    axes.set_xlabel("wait: last voiced sample to when the reply may be heard, median, ms")
    axes.set_ylabel("turns cut off, %")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise ConfigurationError(f"--png {path}: {error.strerror or error}") from error


def _reaches(intervals: Sequence[tuple[float, float, float]], scale: float) -> list[list[float]]:
    """Lengths of the bars below and above, from (low, value, high)."""
    below = [scale * max(0.0, value - low) for low, value, _ in intervals]
    above = [scale * max(0.0, high - value) for _, value, high in intervals]
    return [below, above]

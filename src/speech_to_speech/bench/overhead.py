"""`speech-to-speech bench overhead`: what the server itself costs, with stages that cost nothing.

The server runs here, its clients in a process of their own. A frame pair is 20 ms of audio in and 20 ms of audio out.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import platform
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from speech_to_speech import __version__
from speech_to_speech.arguments_classes import ServerArguments
from speech_to_speech.bench.frame_pair_parts import frame_pair_parts
from speech_to_speech.bench.load_process import LoadProcess, load_process
from speech_to_speech.bench.null_stages import SilentVAD, null_stages
from speech_to_speech.bench.process_cost import allow_connections, resident_bytes, waited_for_core_s
from speech_to_speech.bench.realtime_load import FRAME_S, START_OVER_S, LoadCount
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.runtime.cpu_budget import available_cores
from speech_to_speech.runtime.inline import InlineRuntime
from speech_to_speech.server.app import Server
from speech_to_speech.server.command import run_event_loop
from speech_to_speech.server.loop_monitor import LoopMonitor
from speech_to_speech.stage_types import VAD_FRAME_MS

SETTLE_S = 1.0
"""Between the last connection and the first look at the process."""

BASELINE_S = 2.0
"""How long the cost of connected sessions that send nothing is measured."""

PROBE_INTERVAL_S = 0.005
"""How often the event loop is looked at."""

ON_TIME_MS = 20.0
"""A frame is late when the server has not handled it before the next one is due."""

KEEPS_UP_SHARE = 0.9
"""Below this share of frames handled on time the server does not keep up."""


@dataclasses.dataclass(frozen=True, slots=True)
class Level:
    """One number of active sessions.

    `seconds` measured; `expected_frames`: input frames of 20 ms that so many sessions make in that time; of them
    `frames_sent` by the load process and `frames_handled`: brought through the server to the detector. `frames_out`:
    20 ms of answers received. `pairs`: mean of frames handled and frames out.

    `cpu_us_per_pair`: CPU time of the server (user and system, all threads) less that of the same sessions idle;
    `core_share`: the same over wall time. `block_ms`: by how much a timer on the event loop came late. `handled_ms`:
    frame sent → known to be handled, as the client sees it; `on_time_share`: of the frames asked about, those handled
    within 20 ms. `dry_deltas` of `deltas`: audio that came when the client had played all before it.

    `sent_late`, `load_core_share`: frames the load process itself sent over 20 ms late, and its CPU time over wall
    time. `waited_share`: of the time, that the event loop's thread was kept waiting for a core by other work on the
    machine, the load process included (None where that is not told): what it delays is no cost of the server. `lost`:
    connections that broke.
    """

    sessions: int
    seconds: float
    expected_frames: float
    frames_sent: int
    frames_handled: float
    frames_out: float
    pairs: float
    cpu_us_per_pair: float
    core_share: float
    block_ms: dict[str, float | int]
    handled_ms: dict[str, float | int]
    on_time_share: float
    dry_deltas: int
    deltas: int
    sent_late: int
    load_core_share: float
    waited_share: float | None
    lost: int


@dataclasses.dataclass(frozen=True, slots=True)
class Idle:
    """Sessions that are connected and send nothing. `core_share`: CPU time over wall time of all of them."""

    sessions: int
    memory_kb_per_session: float
    core_share: float


def bench_overhead(*, sessions: Sequence[int], idle: int, seconds: float, json_path: str | None) -> int:
    """Run the benchmark and print its table; returns 0, or 1 when a connection broke.

    Raises `ConfigurationError` for numbers that cannot be and for more connections than the system allows.
    """
    if idle < 0 or seconds <= 0:
        raise ConfigurationError("--idle takes 0 or more, --seconds more than 0")
    allow_connections(max([idle, *sessions]))
    report = _run(_measure(sessions, idle, seconds))
    print(table(report))
    if json_path is not None:
        Path(json_path).write_text(json.dumps(report, indent=1), encoding="utf-8")
    return 0 if all(level["lost"] == 0 for level in report["active"]) else 1


def _run(measurement: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """On the loop that `serve` uses."""
    reports: list[dict[str, Any]] = []

    async def keep_report() -> None:
        reports.append(await measurement)

    run_event_loop(keep_report())
    return reports[0]


async def _measure(sessions: Sequence[int], idle: int, seconds: float) -> dict[str, Any]:
    idle_result = None
    if idle:
        idle_result = await _measure_idle(idle)
        print(_idle_line(idle_result), flush=True)
    levels = []
    for count in sessions:
        levels.append(await _measure_level(count, seconds))
        print(f"{count} active: {levels[-1].cpu_us_per_pair:.1f} us per frame pair", flush=True)
    return {
        "benchmark": "overhead",
        "version": __version__,
        "machine": {
            "cores": available_cores(),
            "processor": platform.machine(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "idle": None if idle_result is None else dataclasses.asdict(idle_result),
        "active": [dataclasses.asdict(level) for level in levels],
        "parts_us_per_pair": {name: round(value, 1) for name, value in frame_pair_parts().items()},
    }


@asynccontextmanager
async def _loaded_server(sessions: int, vad: SilentVAD) -> AsyncIterator[LoadProcess]:
    """A server with null stages, and a load process beside it."""
    runtime = InlineRuntime(null_stages(vad))
    server = Server(runtime, ServerArguments(port=0, max_sessions=sessions), model="none")
    await server.start()
    try:
        async with load_process(server.port) as load:
            yield load
    finally:
        await server.stop()
        runtime.close()


async def _measure_idle(sessions: int) -> Idle:
    async with _loaded_server(sessions, SilentVAD()) as load:
        before = resident_bytes()
        await load.connect(sessions)
        await asyncio.sleep(SETTLE_S)
        grown = resident_bytes() - before
        return Idle(sessions, round(grown / sessions / 1000, 1), round(await _baseline(), 4))


async def _baseline() -> float:
    """CPU time over wall time while the connected sessions send nothing."""
    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.sleep(BASELINE_S)
    return (time.process_time() - cpu) / (time.perf_counter() - wall)


async def _measure_level(sessions: int, seconds: float) -> Level:
    vad = SilentVAD()
    async with _loaded_server(sessions, vad) as load:
        await load.connect(sessions)
        await asyncio.sleep(SETTLE_S)
        late_ms: list[float] = []
        monitor = LoopMonitor(PROBE_INTERVAL_S, late_ms.append)
        monitor.start()  # before the baseline: what looking costs is not the server's
        baseline = await _baseline()
        await load.talk()
        await asyncio.sleep(START_OVER_S + SETTLE_S)
        late_ms.clear()
        before = await _look(load, vad)
        await asyncio.sleep(seconds)
        after = await _look(load, vad)
        monitor.stop()
    return _level(sessions, baseline, before, after, late_ms)


@dataclasses.dataclass(frozen=True, slots=True)
class _Look:
    """Clocks and counts at one time: seconds of wall, CPU and waiting for a core; VAD frames judged."""

    wall: float
    cpu: float
    waited: float | None
    judged: int
    load: LoadCount


async def _look(load: LoadProcess, vad: SilentVAD) -> _Look:
    count = await load.count()
    return _Look(time.perf_counter(), time.process_time(), waited_for_core_s(), vad.judged, count)


def _level(sessions: int, baseline: float, before: _Look, after: _Look, late_ms: list[float]) -> Level:
    wall = after.wall - before.wall
    cpu = after.cpu - before.cpu - baseline * wall
    handled = (after.judged - before.judged) * VAD_FRAME_MS / 1000 / FRAME_S
    frames_out = (after.load.audio_s - before.load.audio_s) / FRAME_S
    pairs = (handled + frames_out) / 2
    handled_ms = after.load.answer_ms[len(before.load.answer_ms) :]
    asked = max(after.load.probes - before.load.probes, len(handled_ms))
    return Level(
        sessions=sessions,
        seconds=round(wall, 2),
        expected_frames=round(sessions * wall / FRAME_S, 1),
        frames_sent=after.load.frames - before.load.frames,
        frames_handled=round(handled, 1),
        frames_out=round(frames_out, 1),
        pairs=round(pairs, 1),
        cpu_us_per_pair=round(cpu / pairs * 1e6, 1) if pairs else 0.0,
        core_share=round(cpu / wall, 4),
        block_ms=percentiles(late_ms),
        handled_ms=percentiles(handled_ms),
        on_time_share=round(sum(ms <= ON_TIME_MS for ms in handled_ms) / asked, 4) if asked else 1.0,
        dry_deltas=after.load.dry_deltas - before.load.dry_deltas,
        deltas=after.load.deltas - before.load.deltas,
        sent_late=after.load.sent_late - before.load.sent_late,
        load_core_share=round((after.load.cpu_s - before.load.cpu_s) / wall, 4),
        waited_share=None
        if before.waited is None or after.waited is None
        else round((after.waited - before.waited) / wall, 4),
        lost=after.load.lost,
    )


def percentiles(values: Sequence[float]) -> dict[str, float | int]:
    """n, median, 99th percentile and maximum of `values`, in their unit; {"n": 0} for none."""
    if not values:
        return {"n": 0}
    p50, p99 = np.percentile(values, [50, 99])
    return {"n": len(values), "p50": round(float(p50), 2), "p99": round(float(p99), 2), "max": round(max(values), 2)}


def table(report: dict[str, Any]) -> str:
    """The result for people."""
    lines = [
        "",
        f"{'active':>6} {'us/pair':>8} {'core':>6} {'loop blocked, ms':>20} {'frame handled, ms':>20} {'on time':>8} "
        f"{'dry':>6} {'sent late':>9} {'load core':>9} {'waited':>7}",
        f"{'':>6} {'':>8} {'':>6} {'p50    p99    max':>20} {'p50    p99    max':>20}",
    ]
    for level in report["active"]:
        sent_late = level["sent_late"] / max(1, level["frames_sent"])
        dry = level["dry_deltas"] / max(1, level["deltas"])
        waited = "-" if level["waited_share"] is None else f"{level['waited_share']:.0%}"
        lines.append(
            f"{level['sessions']:>6} {level['cpu_us_per_pair']:>8.1f} {level['core_share']:>6.1%} "
            f"{_three(level['block_ms'])} {_three(level['handled_ms'])} {level['on_time_share']:>8.2%} "
            f"{dry:>6.1%} {sent_late:>9.1%} {level['load_core_share']:>9.1%} "
            f"{waited:>7}"
        )
    if report["idle"] is not None:
        lines.append(_idle_line(Idle(**report["idle"])))
    return "\n".join([*lines, *_limits(report)])


def _three(figures: dict[str, Any]) -> str:
    values = (figures.get(name, float("nan")) for name in ("p50", "p99", "max"))
    return "".join(f"{value:7.1f}" for value in values).rjust(20)


def _idle_line(idle: Idle) -> str:
    return (
        f"{idle.sessions} idle: {idle.memory_kb_per_session:.1f} KB per session, {idle.core_share:.1%} of a core in all"
    )


def _limits(report: dict[str, Any]) -> list[str]:
    """What a frame pair is made of, and where one core ends."""
    parts = report["parts_us_per_pair"]
    lines = ["alone, us per frame pair: " + ", ".join(f"{name} {value}" for name, value in parts.items())]
    if not report["active"]:
        return lines
    kept_up = [level for level in report["active"] if level["on_time_share"] >= KEEPS_UP_SHARE]
    level = max(kept_up or report["active"], key=lambda level: level["sessions"])
    whole = level["cpu_us_per_pair"]
    rest = whole - sum(parts.values())
    lines[0] += f"; the rest (sockets, event loop, threads) of {whole:.1f}: {rest:.1f}"
    if whole > 0:
        active = level["sessions"]
        lines.append(f"at what {active} active sessions cost, one core holds about {1e6 * FRAME_S / whole:.0f}")
    return lines + [_overload(level) for level in report["active"] if level["on_time_share"] < KEEPS_UP_SHARE]


def _overload(level: dict[str, Any]) -> str:
    handled = level["frames_handled"] / level["expected_frames"]
    waited = level["waited_share"]
    return (
        f"{level['sessions']} active: overloaded. {handled:.0%} of the frames were handled in the time measured, "
        f"{level['on_time_share']:.1%} on time; the server took {level['core_share']:.0%} of a core"
        + ("" if waited is None else f" and waited {waited:.0%} of the time for one that other work had")
    )

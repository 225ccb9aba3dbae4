"""`speech-to-speech bench turn`: last word → first sound, ours beside a fixed policy, interleaved in one run."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import platform
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np

from speech_to_speech import __version__
from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.bench.questions import Question, all_questions
from speech_to_speech.bench.recorded_turn import RecordedTurn, record_turn
from speech_to_speech.conversation.reply import Pacing
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.runtime.backends import Stages, load_stages
from speech_to_speech.runtime.cpu_budget import available_cores
from speech_to_speech.runtime.inline import InlineRuntime
from speech_to_speech.server.app import Server

FIXED_HOLD_MS = 800

STEPS = ("turn_end_ms", "transcript_ms", "first_token_ms", "first_audio_ms", "first_audible_ms")


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """A way to take turns. `pacing` None: as the configuration says."""

    name: str
    session: dict[str, Any]
    pacing: Pacing | None


def policies() -> list[Policy]:
    """Ours, and the classic pipeline: hold 800 ms, then transcribe, answer, speak the whole answer, play it."""
    transcripts = {"transcription": {"model": "default"}}
    fixed = {"type": "server_vad", "silence_duration_ms": FIXED_HOLD_MS}
    return [
        Policy("ours", {"audio": {"input": transcripts}}, None),
        Policy(
            "fixed hold",
            {"audio": {"input": {**transcripts, "turn_detection": fixed}}},
            Pacing(speculate=False, whole_answers=True),
        ),
    ]


WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""How idle threads wait: what the CPU budget sets, unless the user has."""


def bench_turn(configuration: Configuration, *, repeat: int, sessions: int, json_path: str | None) -> int:
    """Run the benchmark and print its table; returns 0 when every question was answered, else 1.

    `sessions` questions are asked at the same time, each in a conversation of its own.
    """
    if repeat < 1 or sessions < 1:
        raise ConfigurationError("--repeat and --sessions: expected at least 1")
    stages = load_stages(configuration)
    runtime = InlineRuntime(stages)
    try:
        turns = asyncio.run(_measure(runtime, configuration, stages, repeat, sessions))
    finally:
        runtime.close()
    report = {
        "benchmark": "turn",
        "version": __version__,
        "machine": {"cores": available_cores(), "processor": platform.machine(), "system": platform.platform()},
        "models": {stage: getattr(configuration, stage).model for stage in ("stt", "llm")}
        | {"tts": configuration.tts.voice},
        "repeat": repeat,
        "sessions": sessions,
        "waiting": {name: os.environ.get(name, "") for name in WAIT_VARIABLES},
        "summary": {name: summary(recorded) for name, recorded in turns.items()},
        "turns": {name: [dataclasses.asdict(turn) for turn in recorded] for name, recorded in turns.items()},
    }
    print(table(turns))
    if json_path is not None:
        Path(json_path).write_text(json.dumps(report, indent=1), encoding="utf-8")
    return 0 if all(turn.voice_to_voice_ms is not None for turn in turns["ours"]) else 1


async def _measure(
    runtime: InlineRuntime, configuration: Configuration, stages: Stages, repeat: int, sessions: int
) -> dict[str, list[RecordedTurn]]:
    questions = all_questions(stages.tts)
    turns: dict[str, list[RecordedTurn]] = {policy.name: [] for policy in policies()}
    async with AsyncExitStack() as stack:
        urls = {policy.name: await _serve(stack, runtime, configuration, policy) for policy in policies()}
        total = repeat * len(questions) * len(urls)
        began = time.monotonic()
        for group in asked_together(questions, sessions) * repeat:
            for policy in policies():
                playing = [record_turn(urls[policy.name], question, policy.session) for question in group]
                for question, recorded in zip(group, await asyncio.gather(*playing), strict=True):
                    turns[policy.name].append(recorded)
                    count = sum(map(len, turns.values()))
                    print(_line(count, total, policy, question, recorded, time.monotonic() - began), flush=True)
    return turns


def asked_together(questions: Sequence[Question], sessions: int) -> list[list[Question]]:
    """Each question once, in groups of `sessions`, far neighbours together: they are of other voices and lengths."""
    groups = -(-len(questions) // sessions)
    return [list(questions[first::groups]) for first in range(groups)]


async def _serve(stack: AsyncExitStack, runtime: InlineRuntime, configuration: Configuration, policy: Policy) -> str:
    arguments = dataclasses.replace(configuration.server, host="127.0.0.1", port=0, api_key_file="")
    server = Server(runtime, arguments, model=configuration.llm.model, pacing=policy.pacing)
    await server.start()
    stack.push_async_callback(server.stop)
    return f"ws://127.0.0.1:{server.port}"


def _line(count: int, total: int, policy: Policy, question: Question, turn: RecordedTurn, elapsed: float) -> str:
    wait = "no answer" if turn.voice_to_voice_ms is None else f"{turn.voice_to_voice_ms:5.0f} ms"
    return f"[{count:3}/{total} {elapsed:4.0f} s] {policy.name:10} {question.name:18} {wait}  {turn.answer[:60]}"


def percentiles(values: Sequence[float]) -> dict[str, float | int]:
    """n, median and 95th percentile of `values`, in their unit; {"n": 0} for none."""
    if not values:
        return {"n": 0}
    return {
        "n": len(values),
        "median": round(float(np.percentile(values, 50)), 1),
        "p95": round(float(np.percentile(values, 95)), 1),
        "min": round(min(values), 1),
        "max": round(max(values), 1),
    }


def summary(turns: Sequence[RecordedTurn]) -> dict[str, Any]:
    """Per length class: voice to voice, the medians of the steps, and how many turns were cut or unanswered."""
    result = {}
    for name in ("short", "long"):
        members = [turn for turn in turns if turn.length_class == name]
        waits = [turn.voice_to_voice_ms for turn in members if turn.voice_to_voice_ms is not None]
        steps = {
            step: percentiles([t.timeline[step] for t in members if t.timeline.get(step) is not None]) for step in STEPS
        }
        result[name] = {
            "voice_to_voice_ms": percentiles([wait for wait in waits if wait >= 0]),
            "answered_before_the_end": sum(wait < 0 for wait in waits),
            "unanswered": len(members) - len(waits),
            "steps_ms": steps,
        }
    return result


def table(turns: dict[str, list[RecordedTurn]]) -> str:
    """The result for people."""
    lines = [
        "",
        "last voiced sample of the user -> first audible sample of the answer, from recordings (ms)",
        f"{'policy':11} {'questions':15} {'n':>3} {'median':>7} {'p95':>6} {'min':>6} {'max':>6} {'cut':>4} {'none':>4}"
        "   medians of: end of turn, transcript, first token, first audio, sent",
    ]
    for name, recorded in turns.items():
        for length, figures in summary(recorded).items():
            wait = figures["voice_to_voice_ms"]
            label = "up to 3.5 s" if length == "short" else "over 3.5 s"
            numbers = " ".join(f"{wait.get(key, float('nan')):6.0f}" for key in ("median", "p95", "min", "max"))
            steps = ", ".join(f"{figures['steps_ms'][step].get('median', float('nan')):.0f}" for step in STEPS)
            lines.append(
                f"{name:11} {label:15} {wait['n']:>3}  {numbers} {figures['answered_before_the_end']:>4} "
                f"{figures['unanswered']:>4}   {steps}"
            )
    ours, fixed = (summary(recorded)["short"]["voice_to_voice_ms"] for recorded in turns.values())
    if ours.get("n") and fixed.get("n"):
        lines.append(f"short questions, median: ours / fixed hold = {ours['median'] / fixed['median']:.2f}")
    return "\n".join(lines)

"""`speech-to-speech bench turn --scenes DIR`: our policy beside a fixed hold, scene by scene, in real time."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from speech_to_speech import __version__
from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.audio.resampling import resample
from speech_to_speech.audio.wav import write_wav
from speech_to_speech.bench.scene_curve import (
    CURVE_KINDS,
    curve,
    curve_json,
    curve_table,
    draw_curve,
    require_matplotlib,
)
from speech_to_speech.bench.scene_judge import Verdict, judge
from speech_to_speech.bench.scene_player import PlayedScene, play_scene
from speech_to_speech.bench.scene_report import as_json, rows, table
from speech_to_speech.bench.scene_results import Result, ResultLog
from speech_to_speech.bench.scene_traces import Trace, cached_trace, has_trace
from speech_to_speech.bench.scenes import Scene, load_scenes
from speech_to_speech.client.audio_device import RATE
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.runtime.backends import Stages, load_stages
from speech_to_speech.runtime.cpu_budget import available_cores
from speech_to_speech.runtime.inline import InlineRuntime
from speech_to_speech.server.app import Server
from speech_to_speech.stage_types import RECOGNITION_RATE, Samples

FIXED_HOLD_MS = 500
"""The Realtime API's own default for `server_vad`."""


@dataclass(frozen=True, slots=True)
class SceneOptions:
    """What the command line says of the scenes; None and "" for what it does not."""

    folder: Path
    kinds: tuple[str, ...] = ()
    split: str = ""
    limit: int | None = None
    repeat: int = 1
    json_path: Path | None = None
    record: Path | None = None
    png: Path | None = None
    replay_only: bool = False


def policies() -> dict[str, dict[str, Any]]:
    """Session settings by policy. Both answer alike; they differ in when a turn is over."""
    transcripts = {"transcription": {"model": "default"}}
    hold = {"type": "server_vad", "silence_duration_ms": FIXED_HOLD_MS}
    return {
        "ours": {"audio": {"input": transcripts}},
        f"hold {FIXED_HOLD_MS}": {"audio": {"input": {**transcripts, "turn_detection": hold}}},
    }


def bench_scenes(configuration: Configuration, options: SceneOptions) -> int:
    """Replay and play the scenes that are still to be played, print the tables of all; returns 0.

    Results gather beside the JSON file, as `.jsonl`; traces in the scenes' folder. Raises a `SpeechToSpeechError` for
    what is wrong with the files or missing on this machine.
    """
    scenes = load_scenes(options.folder, kinds=options.kinds, split=options.split, limit=options.limit)
    if options.png is not None:
        require_matplotlib()
    models = model_names(configuration)
    log = ResultLog(options.json_path.with_suffix(".jsonl") if options.json_path else None, models)
    stages = functools.cache(lambda: load_stages(configuration))
    points = curve(_traces(scenes, options.folder / "traces", models, stages))
    results = [] if options.replay_only else _play(configuration, stages(), scenes, options, log)
    found = rows(results)
    if found:
        print(table(found))
    if points:
        print(curve_table(points))
    report = {
        "benchmark": "scenes",
        "version": __version__,
        "machine": {"cores": available_cores(), "processor": platform.machine(), "system": platform.platform()},
        "models": models,
        "scenes": len(scenes),
        "repeat": options.repeat,
        "curve": curve_json(points),
        "summary": as_json(found),
        "results": [dataclasses.asdict(result) for result in results],
    }
    if options.json_path is not None:
        try:
            options.json_path.write_text(json.dumps(report, indent=1), encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"--json {options.json_path}: {error.strerror or error}") from error
    if options.png is not None:
        draw_curve(points, options.png)
    return 0


def _traces(
    scenes: Sequence[Scene], folder: Path, models: dict[str, str], stages: Callable[[], Stages]
) -> list[tuple[Scene, Trace]]:
    chosen = [scene for scene in scenes if scene.kind in CURVE_KINDS and has_trace(scene)]
    return [(scene, cached_trace(scene, folder, models, stages)) for scene in chosen]


def _play(
    configuration: Configuration, stages: Stages, scenes: Sequence[Scene], options: SceneOptions, log: ResultLog
) -> list[Result]:
    runtime = InlineRuntime(stages)
    try:
        return asyncio.run(_play_all(runtime, configuration, scenes, options, log))
    finally:
        runtime.close()


def model_names(configuration: Configuration) -> dict[str, str]:
    """What the results depend on besides the scenes: backend and model of each stage."""
    pipeline = configuration.pipeline
    return {
        "vad": f"{pipeline.vad} {configuration.vad.model}",
        "turn": f"{pipeline.turn} {configuration.vad.turn_model}",
        "stt": f"{pipeline.stt} {configuration.stt.model}",
        "llm": f"{pipeline.llm} {configuration.llm.model}",
        "tts": f"{pipeline.tts} {configuration.tts.voice}",
    }


async def _play_all(
    runtime: InlineRuntime,
    configuration: Configuration,
    scenes: Sequence[Scene],
    options: SceneOptions,
    log: ResultLog,
) -> list[Result]:
    arguments = dataclasses.replace(configuration.server, host="127.0.0.1", port=0, api_key_file="")
    server = Server(runtime, arguments, model=configuration.llm.model)
    await server.start()
    try:
        url = f"ws://127.0.0.1:{server.port}"
        jobs = [
            (scene, policy, repeat)
            for repeat in range(1, options.repeat + 1)
            for scene in scenes
            for policy in policies()
        ]
        results, began = [], time.monotonic()
        for count, (scene, policy, repeat) in enumerate(jobs, 1):
            result = log.find(scene, policy, repeat)
            if result is None:
                played = await play_scene(url, scene, policies()[policy])
                verdict = await asyncio.to_thread(judge, scene, played, lambda heard: _words(runtime.stages, heard))
                result = log.add(scene, policy, repeat, verdict)
                _record(options.record, f"{scene.name}.{policy.replace(' ', '_')}.{repeat}", played)
                elapsed = time.monotonic() - began
                print(f"[{count:3}/{len(jobs)} {elapsed:5.0f} s] {_line(result)}", flush=True)
            results.append(result)
        return results
    finally:
        await server.stop()


def _words(stages: Stages, heard: Samples) -> str:
    stream = stages.stt.open()
    stream.accept(resample(heard, RATE, RECOGNITION_RATE))
    return stream.decode(final=True, is_cancelled=lambda: False).text


def _record(folder: Path | None, name: str, played: PlayedScene) -> None:
    """Stereo, the user on the left, and the events beside it."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_wav(folder / f"{name}.wav", np.stack([played.user, played.assistant], axis=1), RATE)
        lines = [json.dumps(dataclasses.asdict(timed)) for timed in played.events]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"--record {folder}: {error.strerror or error}") from error


def _line(result: Result) -> str:
    return f"{result.policy:8} {result.scene:32} {', '.join(_remarks(result.verdict)):40} {result.verdict.answer[:50]}"


def _remarks(verdict: Verdict) -> list[str]:
    remarks = []
    if verdict.voice_to_voice_ms is not None:
        remarks.append(f"{verdict.voice_to_voice_ms:.0f} ms")
    if verdict.cut_off:
        remarks.append("cut off")
    if verdict.answered is False:
        remarks.append("no answer")
    if verdict.unwanted_reply:
        remarks.append("unwanted reply")
    if verdict.stopped is not None:
        remarks.append("stopped" if verdict.stopped else "went on")
    if verdict.underruns:
        remarks.append(f"{verdict.underruns} gaps")
    return remarks

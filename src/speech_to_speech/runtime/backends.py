"""Finds the backends by entry point and loads one model per stage."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.errors import ConfigurationError, ModelLoadError, SpeechToSpeechError
from speech_to_speech.LLM.base import LanguageModel
from speech_to_speech.runtime.cpu_budget import apply_wait_policy, available_cores, cpu_budget
from speech_to_speech.STT.base import SpeechToText
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.VAD.base import TurnDetector, VoiceActivityDetector

ENTRY_POINT_PREFIX = "speech_to_speech."
STAGES = ("vad", "turn", "stt", "llm", "tts")


@dataclass(frozen=True, slots=True)
class Stages:
    """One loaded model per stage, shared by all sessions."""

    vad: VoiceActivityDetector
    turn: TurnDetector
    stt: SpeechToText
    llm: LanguageModel
    tts: TextToSpeech


def backend_names(stage: str) -> list[str]:
    """The names of the installed backends of `stage` (vad, turn, stt, llm, tts)."""
    return sorted({point.name for point in entry_points(group=ENTRY_POINT_PREFIX + stage)})


def load_stages(configuration: Configuration) -> Stages:
    """Load every stage's model. Raises a `SpeechToSpeechError` naming what cannot be loaded."""
    apply_wait_policy()
    pipeline = configuration.pipeline
    budget = cpu_budget(pipeline.threads or available_cores())
    chosen = {stage: _entry_point(stage, getattr(pipeline, stage)) for stage in STAGES}
    return Stages(
        vad=_load(chosen["vad"], configuration.vad, budget.vad),
        turn=_load(chosen["turn"], configuration.vad, budget.turn),
        stt=_load(chosen["stt"], configuration.stt, budget.stt),
        llm=_load(chosen["llm"], configuration.llm, budget.llm),
        tts=_load(chosen["tts"], configuration.tts, budget.tts),
    )


def _entry_point(stage: str, name: str) -> EntryPoint:
    points = {point.name: point for point in entry_points(group=ENTRY_POINT_PREFIX + stage)}
    if name not in points:
        near = difflib.get_close_matches(name, points, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ConfigurationError(f"--{stage} {name}: no such backend. Installed: {', '.join(sorted(points))}.{hint}")
    return points[name]


def _load(backend: EntryPoint, arguments: object, threads: int) -> Any:
    try:
        return backend.load().load(arguments, threads)
    except SpeechToSpeechError:
        raise
    except Exception as error:
        flag = f"--{backend.group.removeprefix(ENTRY_POINT_PREFIX)} {backend.name}"
        raise ModelLoadError(f"{flag}: {type(error).__name__}: {error}") from error

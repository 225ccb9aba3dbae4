"""Finds the backends by entry point and loads one model per stage."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.errors import ConfigurationError, ModelLoadError, SpeechToSpeechError
from speech_to_speech.LLM.base import LanguageModel
from speech_to_speech.runtime.cpu_budget import CPUBudget, apply_wait_policy, available_cores, cpu_budget
from speech_to_speech.runtime.installed_backends import ENTRY_POINT_PREFIX, STAGES
from speech_to_speech.STT.base import SpeechToText
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.VAD.base import TurnDetector, VoiceActivityDetector


@dataclass(frozen=True, slots=True)
class Stages:
    """One loaded model per stage, shared by all sessions."""

    vad: VoiceActivityDetector
    turn: TurnDetector
    stt: SpeechToText
    llm: LanguageModel
    tts: TextToSpeech


def backend_class(stage: str, name: str) -> Any:
    """The class of a backend. Raises `ConfigurationError` for an unknown name, `ModelLoadError` for a broken one."""
    backend = _entry_point(stage, name)
    try:
        return backend.load()
    except Exception as error:
        raise ModelLoadError(f"--{stage} {name}: {type(error).__name__}: {error}") from error


def arguments_of(stage: str, configuration: Configuration) -> Any:
    """The options of a stage's backends. Both detectors share theirs."""
    return getattr(configuration, "vad" if stage == "turn" else stage)


def load_stages(configuration: Configuration) -> Stages:
    """Load every stage's model. Raises a `SpeechToSpeechError` naming what cannot be loaded."""
    apply_wait_policy()
    pipeline = configuration.pipeline
    budget = cpu_budget(pipeline.threads or available_cores())
    chosen = {stage: backend_class(stage, getattr(pipeline, stage)) for stage in STAGES}
    return Stages(**{stage: _load(stage, chosen[stage], configuration, budget) for stage in STAGES})


def _entry_point(stage: str, name: str) -> EntryPoint:
    points = {point.name: point for point in entry_points(group=ENTRY_POINT_PREFIX + stage)}
    if name not in points:
        near = difflib.get_close_matches(name, points, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ConfigurationError(f"--{stage} {name}: no such backend. Installed: {', '.join(sorted(points))}.{hint}")
    return points[name]


def _load(stage: str, backend: Any, configuration: Configuration, budget: CPUBudget) -> Any:
    try:
        return backend.load(arguments_of(stage, configuration), getattr(budget, stage))
    except SpeechToSpeechError:
        raise
    except Exception as error:
        flag = f"--{stage} {getattr(configuration.pipeline, stage)}"
        raise ModelLoadError(f"{flag}: {type(error).__name__}: {error}") from error

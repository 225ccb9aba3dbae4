"""What the models say of a scene, recorded once: frame by frame, pause by pause, with the time each answer took.

Each model runs alone here; on a busy server its answers come later, and a pause may be over before one does.

A trace knows the turn as the user speaks it, uncut. A policy that cuts it is told so by the replay, and what the models
would have said after the cut is not needed.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from speech_to_speech.audio.resampling import resample
from speech_to_speech.bench.scene_sound import UserSide
from speech_to_speech.bench.scenes import Scene
from speech_to_speech.client.audio_device import RATE
from speech_to_speech.conversation.listening import ASK_TURN_DETECTOR_AT_MS, TURN_DETECTOR_WINDOW_MS
from speech_to_speech.conversation.turn_detection import SemanticVAD
from speech_to_speech.conversation.user_audio import from_ms, to_ms
from speech_to_speech.conversation.voice_activity import VoiceActivity, VoiceChange
from speech_to_speech.runtime.backends import Stages
from speech_to_speech.stage_types import RECOGNITION_RATE, VAD_FRAME_SAMPLES, Samples

TAIL_MS = 6_000
"""Silence after the user's turn: longer than any policy waits for."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class TurnDetectorAnswer:
    """What the turn detector said after `silence_ms`, and how long that took."""

    silence_ms: int
    p_complete: float
    took_ms: float


@dataclass(slots=True)
class Pause:
    """One silence of the user. Positions are samples at 16 kHz; `text` is the transcript up to it."""

    voiced_end: int
    audible_end: int
    text: str
    took_ms: float
    answers: list[TurnDetectorAnswer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Trace:
    """`probabilities` and `levels` (RMS) of each frame of 32 ms; `turn_end_ms`: the user's last voiced sample."""

    turn_end_ms: float
    probabilities: list[float]
    levels: list[float]
    pauses: list[Pause]


def has_trace(scene: Scene) -> bool:
    """True for scenes with one turn of the user before anything waits for the assistant."""
    starts = UserSide(scene).starts
    turns = [start for start, step in zip(starts, scene.steps, strict=True) if step.role == "turn"]
    return len([start for start in turns if start is not None]) == 1


def cached_trace(scene: Scene, folder: Path, models: dict[str, str], stages: Callable[[], Stages]) -> Trace:
    """The trace in `folder`, if it is of this scene and these models; else a new one, which is put there."""
    path = folder / f"{scene.name}.json"
    key = {"digest": scene.digest, "models": {stage: models[stage] for stage in ("vad", "turn", "stt")}}
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if known["key"] == key:
            return _read(known["trace"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # there is none yet, or it was not written to its end
    trace = record_trace(scene, stages())
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"key": key, "trace": dataclasses.asdict(trace)}), encoding="utf-8")
    return trace


def record_trace(scene: Scene, stages: Stages) -> Trace:
    """Run the detectors and the recogniser over the scene's user, faster than real time."""
    user = UserSide(scene)
    audio = resample(user.samples(0, user.end + TAIL_MS * RATE // 1000), RATE, RECOGNITION_RATE)
    return _Recorder(stages, audio).trace(_turn_end_ms(scene, user))


def _turn_end_ms(scene: Scene, user: UserSide) -> float:
    start = user.starts[scene.first_turn or 0]
    assert start is not None and scene.expect.must_not_reply_before_ms is not None
    return start / RATE * 1000 + scene.expect.must_not_reply_before_ms


class _Recorder:
    def __init__(self, stages: Stages, audio: Samples) -> None:
        self._stages = stages
        self._audio = audio
        self._detection = SemanticVAD()
        self._voice = VoiceActivity()
        self._turn_start = 0
        self._pauses: list[Pause] = []

    def trace(self, turn_end_ms: float) -> Trace:
        """Every frame, in its order."""
        count = len(self._audio) // VAD_FRAME_SAMPLES
        frames = self._audio[: count * VAD_FRAME_SAMPLES].reshape(count, VAD_FRAME_SAMPLES)
        state = self._stages.vad.new_state()
        probabilities = [float(self._stages.vad.detect(frame[None], [state])[0]) for frame in frames]
        levels = [float(level) for level in np.sqrt(np.mean(np.square(frames), axis=1))]
        for index, (probability, level) in enumerate(zip(probabilities, levels, strict=True)):
            self._frame(index, probability, level)
        return Trace(turn_end_ms, probabilities, levels, self._pauses)

    def _frame(self, index: int, probability: float, level: float) -> None:
        voice = self._voice
        change = voice.frame(index, probability, self._detection.threshold, level)
        if change is VoiceChange.ONSET:
            self._turn_start = max(0, voice.onset - from_ms(self._detection.prefix_padding_ms))
        elif change is VoiceChange.PAUSE:
            text, took_ms = _timed(lambda: self._transcribe(voice.frame_end))
            self._pauses.append(Pause(voice.voiced_end, voice.audible_end, text, took_ms))
        if voice.pausing:
            self._ask(self._pauses[-1])

    def _ask(self, pause: Pause) -> None:
        asked, silence_ms = len(pause.answers), to_ms(self._voice.silence_samples)
        if asked < len(ASK_TURN_DETECTOR_AT_MS) and silence_ms >= ASK_TURN_DETECTOR_AT_MS[asked]:
            end = self._voice.frame_end
            heard = self._audio[max(self._turn_start, end - from_ms(TURN_DETECTOR_WINDOW_MS)) : end]
            (p_complete,), took_ms = _timed(lambda: self._stages.turn.predict([heard]))
            pause.answers.append(TurnDetectorAnswer(silence_ms, p_complete, took_ms))

    def _transcribe(self, end: int) -> str:
        stream = self._stages.stt.open()
        stream.accept(self._audio[self._turn_start : end])
        return stream.decode(final=True, is_cancelled=lambda: False).text


def _timed(call: Callable[[], Answer]) -> tuple[Answer, float]:
    started = time.perf_counter()
    answer = call()
    return answer, (time.perf_counter() - started) * 1000


def _read(shape: dict[str, Any]) -> Trace:
    pauses = [
        Pause(**pause | {"answers": [TurnDetectorAnswer(**answer) for answer in pause["answers"]]})
        for pause in shape["pauses"]
    ]
    return Trace(**shape | {"pauses": pauses})

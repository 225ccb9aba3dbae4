"""Smart Turn v3 (ONNX): has the user finished? Judged from the sound of the last 8 seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speech_to_speech.arguments_classes.vad_arguments import VADArguments
from speech_to_speech.backend import Requirement
from speech_to_speech.models import resolve
from speech_to_speech.models.onnx_model import open_onnx_model
from speech_to_speech.stage_types import RECOGNITION_RATE, Samples
from speech_to_speech.VAD.base import TurnDetector
from speech_to_speech.VAD.log_mel import log_mel

_WINDOW_SAMPLES = 8 * RECOGNITION_RATE


class SmartTurn(TurnDetector):
    """A Whisper-tiny encoder with a classifier on top; its output is already a probability."""

    requirements = (Requirement("onnxruntime", "onnxruntime"),)

    def __init__(self, model: Any) -> None:
        self._model = model

    @classmethod
    def load(cls, arguments: VADArguments, threads: int) -> SmartTurn:
        detector = cls(open_onnx_model(resolve("turn", arguments.turn_model), threads))
        detector.predict([np.zeros(_WINDOW_SAMPLES, dtype=np.float32)])
        return detector

    def predict(self, turns: Sequence[Samples]) -> list[float]:
        if not turns:
            return []
        features = np.stack([turn_features(turn) for turn in turns])
        (probabilities,) = self._model.run(["logits"], {"input_features": features})
        return [float(probability) for probability in probabilities[:, 0]]


def turn_features(turn: Samples) -> NDArray[np.float32]:
    """The model's input `[80, 800]`: the last 8 s, silence in front of shorter turns, then log-mel.

    Zero mean and unit variance are taken over the 8 s with the silence, as `WhisperFeatureExtractor` does with
    `do_normalize=True`; its epsilon is 1e-7.
    """
    window = np.zeros(_WINDOW_SAMPLES, dtype=np.float32)
    heard = turn[-_WINDOW_SAMPLES:]
    window[_WINDOW_SAMPLES - len(heard) :] = heard
    normalised = (window - window.mean()) / np.sqrt(window.var() + 1e-7)
    return log_mel(normalised)

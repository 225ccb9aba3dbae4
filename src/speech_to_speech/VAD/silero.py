"""Silero VAD (v5 and v6, ONNX): speech probabilities of 32 ms frames, all sessions in one run of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speech_to_speech.arguments_classes.vad_arguments import VADArguments
from speech_to_speech.backend import Requirement
from speech_to_speech.models import resolve
from speech_to_speech.models.onnx_model import open_onnx_model
from speech_to_speech.stage_types import RECOGNITION_RATE, VAD_FRAME_SAMPLES
from speech_to_speech.VAD.base import VoiceActivityDetector, VoiceActivityState

_CONTEXT_SAMPLES = 64
_STATE_SHAPE = (2, 128)


class SileroState(VoiceActivityState):
    """One session's LSTM state `[2, 128]` and the last 64 samples it heard."""

    __slots__ = ("context", "recurrent")

    def __init__(self) -> None:
        self.recurrent: NDArray[np.float32] = np.zeros(_STATE_SHAPE, dtype=np.float32)
        self.context: NDArray[np.float32] = np.zeros(_CONTEXT_SAMPLES, dtype=np.float32)


class SileroVAD(VoiceActivityDetector):
    """Silero's model on onnxruntime. Tensor names and the 64-sample context are those of its own `OnnxWrapper`."""

    requirements = (Requirement("onnxruntime", "onnxruntime"),)

    def __init__(self, model: Any) -> None:
        self._model = model
        self._rate = np.array(RECOGNITION_RATE, dtype=np.int64)

    @classmethod
    def load(cls, arguments: VADArguments, threads: int) -> SileroVAD:
        """One thread whatever `threads` says: a frame takes 0.07 ms, less than waking a second thread."""
        detector = cls(open_onnx_model(resolve("vad", arguments.model), threads=1))
        detector.detect(np.zeros((1, VAD_FRAME_SAMPLES), dtype=np.float32), [detector.new_state()])
        return detector

    def new_state(self) -> SileroState:
        return SileroState()

    def detect(self, frames: NDArray[np.float32], states: Sequence[VoiceActivityState]) -> NDArray[np.float32]:
        if not states:
            return np.zeros(0, dtype=np.float32)
        sessions = [state for state in states if isinstance(state, SileroState)]
        assert len(sessions) == len(frames), "one SileroState per frame"
        contexts = np.stack([session.context for session in sessions])
        probabilities, recurrent = self._model.run(
            ["output", "stateN"],
            {
                "input": np.concatenate([contexts, frames], axis=1, dtype=np.float32),
                "state": np.stack([session.recurrent for session in sessions], axis=1),
                "sr": self._rate,
            },
        )
        for index, session in enumerate(sessions):
            session.recurrent = recurrent[:, index].copy()
            session.context = frames[index, -_CONTEXT_SAMPLES:].astype(np.float32)
        result: NDArray[np.float32] = probabilities[:, 0]
        return result

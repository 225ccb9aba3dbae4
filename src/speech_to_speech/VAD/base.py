"""The interface of voice-activity and turn detectors. One instance serves all sessions of a process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from speech_to_speech.arguments_classes.vad_arguments import VADArguments
from speech_to_speech.backend import Backend
from speech_to_speech.stage_types import Samples


class VoiceActivityState:
    """What a detector remembers of one session between frames. Backends subclass it."""


class VoiceActivityDetector(Backend, ABC):
    """Says for each 32 ms frame of each session how likely it holds speech."""

    @classmethod
    @abstractmethod
    def load(cls, arguments: VADArguments, threads: int) -> VoiceActivityDetector:
        """Load the model; `threads` is this stage's share of the CPU budget. Raises `ModelLoadError`, `AssetError`."""

    @abstractmethod
    def new_state(self) -> VoiceActivityState:
        """The state of a session that has heard nothing."""

    @abstractmethod
    def detect(self, frames: NDArray[np.float32], states: Sequence[VoiceActivityState]) -> NDArray[np.float32]:
        """Speech probabilities `[batch]` of `frames` `[batch, 512]` (16 kHz); `states` are brought up to date.

        A state may stand in a batch once only: two frames of a session depend on each other.
        """


class TurnDetector(Backend, ABC):
    """Says how likely the user has finished speaking, judging by sound."""

    @classmethod
    @abstractmethod
    def load(cls, arguments: VADArguments, threads: int) -> TurnDetector:
        """Load the model. Raises `ModelLoadError`, `AssetError`."""

    @abstractmethod
    def predict(self, turns: Sequence[Samples]) -> list[float]:
        """P(complete) for each turn (16 kHz mono, any length; what the model cannot see is cut from the front)."""

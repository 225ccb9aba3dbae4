"""Stages that cost next to nothing: what is left is the server itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speech_to_speech.LLM.base import LanguageModel
from speech_to_speech.runtime.backends import Stages
from speech_to_speech.stage_types import (
    GenerateRequest,
    GenerationDone,
    GenerationPiece,
    IsCancelled,
    LanguageModelCapabilities,
    Samples,
    SpeechToTextCapabilities,
    TextDelta,
    TextToSpeechCapabilities,
    Transcript,
)
from speech_to_speech.STT.base import RecognitionStream, SpeechToText
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.VAD.base import TurnDetector, VoiceActivityDetector, VoiceActivityState

ANSWER = "These are the words of an answer. " * 5
"""What every answer says: about ten seconds of speech, in clauses of some two seconds."""

CHARACTERS_PER_SECOND = 17
"""The tempo of speech."""

VOICE_RATE = 22_050
"""The rate of the default voice, in Hz: its audio is resampled on its way out, as it is in service."""

_LONGEST_CLAUSE_S = 15


class SilentVAD(VoiceActivityDetector):
    """Hears no speech, ever. `judged` counts the frames of all sessions."""

    def __init__(self) -> None:
        self.judged = 0

    @classmethod
    def load(cls, arguments: Any, threads: int) -> SilentVAD:
        return cls()

    def new_state(self) -> VoiceActivityState:
        return VoiceActivityState()

    def detect(self, frames: NDArray[np.float32], states: Sequence[VoiceActivityState]) -> NDArray[np.float32]:
        self.judged += len(states)
        return np.zeros(len(states), np.float32)


class NullTurnDetector(TurnDetector):
    """Takes every turn for complete."""

    @classmethod
    def load(cls, arguments: Any, threads: int) -> NullTurnDetector:
        return cls()

    def predict(self, turns: Sequence[Samples]) -> list[float]:
        return [1.0 for _ in turns]


class NullStream(RecognitionStream):
    """Understands nothing."""

    def accept(self, samples: Samples) -> None:
        pass

    def decode(self, *, final: bool, is_cancelled: IsCancelled) -> Transcript:
        return Transcript("", "", final)


class NullSTT(SpeechToText):
    """A recogniser of `NullStream`s."""

    @classmethod
    def load(cls, arguments: Any, threads: int) -> NullSTT:
        return cls()

    @property
    def capabilities(self) -> SpeechToTextCapabilities:
        return SpeechToTextCapabilities(partials=False)

    def open(self, *, language: str = "", prompt: str = "") -> RecognitionStream:
        return NullStream()


class FixedAnswerLLM(LanguageModel):
    """Says `ANSWER`, word by word, at once."""

    @classmethod
    def load(cls, arguments: Any, threads: int) -> FixedAnswerLLM:
        return cls()

    @property
    def capabilities(self) -> LanguageModelCapabilities:
        return LanguageModelCapabilities(prefill=True, tools=False, context_tokens=4096)

    def generate(self, request: GenerateRequest, is_cancelled: IsCancelled) -> Iterator[GenerationPiece]:
        if not request.prefill_only:
            for word in ANSWER.split():
                yield TextDelta(word + " ")
        yield GenerationDone("stop")

    def release(self, conversation: str) -> None:
        pass

    def close(self) -> None:
        pass


class PreparedTTS(TextToSpeech):
    """Speaks with noise that was made beforehand, as long as the text would take."""

    def __init__(self) -> None:
        noise = np.random.default_rng(0).uniform(-0.3, 0.3, _LONGEST_CLAUSE_S * VOICE_RATE)
        self._noise = noise.astype(np.float32)

    @classmethod
    def load(cls, arguments: Any, threads: int) -> PreparedTTS:
        return cls()

    @property
    def capabilities(self) -> TextToSpeechCapabilities:
        return TextToSpeechCapabilities(streams_text=False, sample_rate=VOICE_RATE, voices=("noise",))

    def synthesize(self, text: str, *, voice: str, speed: float, is_cancelled: IsCancelled) -> Iterator[Samples]:
        yield self._noise[: len(text) * VOICE_RATE // CHARACTERS_PER_SECOND]


def null_stages(vad: SilentVAD) -> Stages:
    """`vad`, and one of each other stage."""
    return Stages(vad, NullTurnDetector(), NullSTT(), FixedAnswerLLM(), PreparedTTS())

"""Stages without models, for tests of sockets and limits: a loud frame is speech, and everything said is "hello"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speech_to_speech.bench.null_stages import NullTurnDetector
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
from speech_to_speech.VAD.base import VoiceActivityDetector, VoiceActivityState


class LoudnessVAD(VoiceActivityDetector):
    @classmethod
    def load(cls, arguments: Any, threads: int) -> LoudnessVAD:
        return cls()

    def new_state(self) -> VoiceActivityState:
        return VoiceActivityState()

    def detect(self, frames: NDArray[np.float32], states: Sequence[VoiceActivityState]) -> NDArray[np.float32]:
        return (np.abs(frames).max(axis=1) > 0.1).astype(np.float32)


class HelloStream(RecognitionStream):
    def accept(self, samples: Samples) -> None:
        pass

    def decode(self, *, final: bool, is_cancelled: IsCancelled) -> Transcript:
        return Transcript("hello", "hello" if final else "", final)


class HelloSTT(SpeechToText):
    @classmethod
    def load(cls, arguments: Any, threads: int) -> HelloSTT:
        return cls()

    @property
    def capabilities(self) -> SpeechToTextCapabilities:
        return SpeechToTextCapabilities(partials=False)

    def open(self, *, language: str = "", prompt: str = "") -> RecognitionStream:
        return HelloStream()


class EchoLLM(LanguageModel):
    def __init__(self) -> None:
        self.released: list[str] = []

    @classmethod
    def load(cls, arguments: Any, threads: int) -> EchoLLM:
        return cls()

    @property
    def capabilities(self) -> LanguageModelCapabilities:
        return LanguageModelCapabilities(prefill=True, tools=False, context_tokens=1000)

    def generate(self, request: GenerateRequest, is_cancelled: IsCancelled) -> Iterator[GenerationPiece]:
        if not request.prefill_only:
            yield TextDelta(f"You said {request.messages[-1].text}.")
        yield GenerationDone("stop")

    def release(self, conversation: str) -> None:
        self.released.append(conversation)

    def close(self) -> None:
        pass


class BeepTTS(TextToSpeech):
    @classmethod
    def load(cls, arguments: Any, threads: int) -> BeepTTS:
        return cls()

    @property
    def capabilities(self) -> TextToSpeechCapabilities:
        return TextToSpeechCapabilities(streams_text=False, sample_rate=22_050, voices=("beep",))

    def synthesize(self, text: str, *, voice: str, speed: float, is_cancelled: IsCancelled) -> Iterator[Samples]:
        time = np.arange(22_050 // 2, dtype=np.float32) / 22_050
        yield (0.3 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)


def scripted_stages() -> Stages:
    return Stages(LoudnessVAD(), NullTurnDetector(), HelloSTT(), EchoLLM(), BeepTTS())

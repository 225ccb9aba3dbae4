"""The recognisers and the voice to try them with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from speech_to_speech.arguments_classes import STTArguments, TTSArguments
from speech_to_speech.audio.resampling import resample
from speech_to_speech.stage_types import RECOGNITION_RATE, Samples
from speech_to_speech.STT.faster_whisper_handler import FasterWhisper

Say = Callable[[str], Samples]


@pytest.fixture(scope="session")
def base() -> FasterWhisper:
    return FasterWhisper.load(STTArguments(model="base"), 2)


@pytest.fixture(scope="session")
def tiny() -> FasterWhisper:
    return FasterWhisper.load(STTArguments(model="tiny.en"), 2)


@pytest.fixture(scope="session")
def say() -> Say:
    """Speech at 16 kHz by the default voice."""
    from speech_to_speech.TTS.piper_handler import PiperTTS

    voice = PiperTTS.load(TTSArguments(), 1)

    def speak(text: str) -> Samples:
        spoken = np.concatenate(list(voice.synthesize(text, voice="", speed=1.0, is_cancelled=lambda: False)))
        return resample(spoken, voice.capabilities.sample_rate, RECOGNITION_RATE)

    return speak

from __future__ import annotations

import onnxruntime
import pytest
from faster_whisper import WhisperModel

from speech_to_speech import models
from speech_to_speech.arguments_classes.tts_arguments import TTSArguments
from speech_to_speech.TTS.piper_handler import PiperTTS


@pytest.fixture(scope="session")
def piper() -> PiperTTS:
    """The default voice, with a seed for its noise."""
    onnxruntime.set_seed(1)
    return PiperTTS.load(TTSArguments(), threads=2)


@pytest.fixture(scope="session")
def listener() -> WhisperModel:
    """An independent judge of what is said."""
    return WhisperModel(str(models.resolve("stt", "base")), device="cpu", compute_type="int8", cpu_threads=2)

"""One server on the default models for all end-to-end tests, and a voice to speak to it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import speech_to_speech
from live_server import RATE, LiveServer, serving
from speech_to_speech.arguments_classes import TTSArguments
from speech_to_speech.audio.resampling import resample
from speech_to_speech.audio.wav import read_wav

QUESTION = Path(speech_to_speech.__file__).parent / "client" / "assets" / "question.wav"

Say = Callable[[str], NDArray[np.float32]]


@pytest.fixture(scope="session")
def server() -> Iterator[LiveServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="session")
def say() -> Say:
    """Speech at 24 kHz by the default voice, silence of 200 ms around it.

    The voice says nothing twice in the same way; what a test must be sure of is the packaged recording.
    """
    from speech_to_speech.TTS.piper_handler import PiperTTS

    voice = PiperTTS.load(TTSArguments(), 1)
    silence = np.zeros(RATE // 5, np.float32)

    def speak(text: str) -> NDArray[np.float32]:
        if text == "What is the capital of France?":
            return read_wav(QUESTION, RATE)
        spoken = np.concatenate(list(voice.synthesize(text, voice="", speed=1.0, is_cancelled=lambda: False)))
        return np.concatenate([silence, resample(spoken, voice.capabilities.sample_rate, RATE), silence])

    return speak


@pytest.fixture(scope="session")
def heard() -> Callable[[NDArray[np.float32]], str]:
    """What a recogniser of its own understands of 24 kHz audio."""
    from faster_whisper import WhisperModel

    from speech_to_speech.models import resolve

    model = WhisperModel(str(resolve("stt", "base")), device="cpu", compute_type="int8", cpu_threads=2)

    def transcribe(samples: NDArray[np.float32]) -> str:
        segments, _ = model.transcribe(resample(samples, RATE, 16_000), language="en", beam_size=1)
        return " ".join(segment.text for segment in segments).lower()

    return transcribe

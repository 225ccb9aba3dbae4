"""What the turn benchmark asks: several voices and recorded people, 1 to 10 seconds each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from speech_to_speech.audio.resampling import resample
from speech_to_speech.audio.wav import read_wav
from speech_to_speech.client.audio_device import RATE
from speech_to_speech.stage_types import Samples
from speech_to_speech.TTS.base import TextToSpeech

VOICED_LEVEL = 0.02
"""A sample of the user counts as voiced above this share of full scale."""

SHORT_SECONDS = 3.5
"""Questions up to this long form the class "short", longer ones "long"."""

SPOKEN_BY_THE_DEFAULT_VOICE = {
    "france": "What is the capital of France?",
    "moon": "How far away is the moon?",
    "penguins": "Please tell me a fun fact about penguins.",
    "weather": "Could you please tell me what the weather is going to be like in New York today and tomorrow?",
    "guitar": "I have been learning to play the guitar for about two months now, and my fingers hurt a lot. "
    "What can I do about it?",
}


@dataclass(frozen=True, slots=True)
class Question:
    """`samples` at 24 kHz, silence around them; `voiced_end_s`: the last voiced sample, in seconds from their start."""

    name: str
    voice: str
    samples: Samples
    spoken_s: float
    voiced_end_s: float

    @property
    def length_class(self) -> str:
        """ "short" or "long"."""
        return "short" if self.spoken_s <= SHORT_SECONDS else "long"


def all_questions(synthesizer: TextToSpeech) -> list[Question]:
    """Every question; those without a recording are spoken by `synthesizer`."""
    spoken = [
        _question(name, "default voice", _speak(synthesizer, text))
        for name, text in SPOKEN_BY_THE_DEFAULT_VOICE.items()
    ]
    recordings = Path(__file__).parent / "recordings"
    return spoken + [_recorded(path) for path in sorted(recordings.glob("*.wav"))]


def _recorded(path: Path) -> Question:
    voice = "espeak" if path.name.startswith("espeak") else "recorded person"
    return _question(path.stem, voice, read_wav(path, RATE))


def _speak(synthesizer: TextToSpeech, text: str) -> Samples:
    made = np.concatenate(list(synthesizer.synthesize(text, voice="", speed=1.0, is_cancelled=lambda: False)))
    return resample(made, synthesizer.capabilities.sample_rate, RATE)


def _question(name: str, voice: str, speech: Samples) -> Question:
    silence = np.zeros(RATE // 2, np.float32)
    samples = np.concatenate([silence, speech])
    voiced = np.flatnonzero(np.abs(samples) > VOICED_LEVEL)
    return Question(name, voice, samples, float(voiced[-1] - voiced[0]) / RATE, float(voiced[-1]) / RATE)

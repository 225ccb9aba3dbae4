"""A synthesiser that says every word as a beep; longer words last longer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from speech_to_speech.arguments_classes import TTSArguments
from speech_to_speech.errors import Cancelled, ConfigurationError, StageError
from speech_to_speech.stage_types import IsCancelled, Samples, TextToSpeechCapabilities
from speech_to_speech.TTS.base import TextToSpeech

SAMPLE_RATE = 16_000
PITCHES_HZ = {"low": 220.0, "high": 880.0}
LETTER_S = 0.06
PAUSE_S = 0.05


class BeepTTS(TextToSpeech):
    """One instance serves all conversations, from several threads: it keeps nothing between two calls."""

    def __init__(self, voice: str, speed: float) -> None:
        self._voice = voice
        self._speed = speed

    @classmethod
    def load(cls, arguments: TTSArguments, threads: int) -> BeepTTS:
        """Called once. A real backend opens its model here and lets it use `threads` threads."""
        if not arguments.speed > 0:
            raise ConfigurationError(f"--tts_speed {arguments.speed}: expected more than 0")
        if arguments.voice == TTSArguments().voice:  # nobody chose one: this is Piper's
            return cls("low", arguments.speed)
        if arguments.voice not in PITCHES_HZ:
            raise ConfigurationError(f"--tts_voice {arguments.voice}: expected {' or '.join(PITCHES_HZ)}")
        return cls(arguments.voice, arguments.speed)

    @classmethod
    def voice_names(cls) -> tuple[str, ...]:
        """For `speech-to-speech voices`."""
        return tuple(PITCHES_HZ)

    @property
    def capabilities(self) -> TextToSpeechCapabilities:
        voices = sorted(PITCHES_HZ, key=lambda voice: voice != self._voice)  # the default comes first
        return TextToSpeechCapabilities(streams_text=False, sample_rate=SAMPLE_RATE, voices=tuple(voices))

    def synthesize(self, text: str, *, voice: str, speed: float, is_cancelled: IsCancelled) -> Iterator[Samples]:
        """A piece of audio per word, so that the first is heard while the others are made."""
        if voice and voice not in PITCHES_HZ:
            raise StageError("tts", f"unknown voice {voice!r}; there are {', '.join(PITCHES_HZ)}")
        pitch = PITCHES_HZ[voice or self._voice]
        for word in text.split():
            if is_cancelled():
                raise Cancelled
            yield beep(pitch, LETTER_S * len(word) / (speed * self._speed))


def beep(pitch_hz: float, seconds: float) -> Samples:
    """A tone that swells and fades, and a pause; float32 in [-1, 1]."""
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    tone = 0.3 * np.sin(2 * np.pi * pitch_hz * time) * np.hanning(len(time))
    return np.concatenate([tone, np.zeros(round(PAUSE_S * SAMPLE_RATE))]).astype(np.float32)

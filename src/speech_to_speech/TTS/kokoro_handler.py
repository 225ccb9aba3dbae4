"""Kokoro-82M: more natural than Piper at about eight times its computation, on onnxruntime."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from speech_to_speech import models
from speech_to_speech.arguments_classes.tts_arguments import TTSArguments
from speech_to_speech.backend import Requirement
from speech_to_speech.errors import Cancelled, ConfigurationError, ModelLoadError, StageError
from speech_to_speech.models.assets import KOKORO_VOICES
from speech_to_speech.models.onnx_model import open_onnx_model
from speech_to_speech.stage_types import IsCancelled, Samples, TextToSpeechCapabilities
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.TTS.kokoro_phonemes import EnglishPhonemes
from speech_to_speech.TTS.silence_trim import SilenceTrimmer

_SAMPLE_RATE = 24_000

_LONGEST = 200
"""Phonemes given to the model at once: about 14 s of speech. It takes 510, but hurries long before that, and no cancel
stops a run."""

_EDGE = 0
"""The token before the first phoneme and after the last."""

_LEAD_MS, _TRAIL_MS = 50.0, 250.0
"""Silence left before and after each part; the model makes 300-400 ms before and 400-500 after."""

_Styles: TypeAlias = "dict[str, NDArray[np.float32]]"
"""By voice, the default first; each `[510, 256]`, a row per number of phonemes."""

_WARM_UP_TEXT = "Oh, no way! The capital of France is Paris."


class KokoroTTS(TextToSpeech):
    """Kokoro with its English voices. Safe to call from several threads."""

    requirements = (Requirement("piper", "piper-tts", "kokoro"),)

    def __init__(self, session: Any, vocabulary: dict[str, int], styles: _Styles, speed: float) -> None:
        self._session = session
        self._vocabulary = vocabulary
        self._styles = styles
        self._speed = speed
        self._phonemes = EnglishPhonemes()
        self._capabilities = TextToSpeechCapabilities(
            streams_text=False, sample_rate=_SAMPLE_RATE, voices=tuple(styles), languages=("en-US", "en-GB")
        )

    @classmethod
    def voice_names(cls) -> tuple[str, ...]:
        return tuple(KOKORO_VOICES)

    @classmethod
    def check(cls, arguments: TTSArguments) -> None:
        super().check(arguments)
        _default_voice(arguments)

    @classmethod
    def load(cls, arguments: TTSArguments, threads: int) -> KokoroTTS:
        cls.check(arguments)
        path = models.resolve("tts", "kokoro")
        try:
            vocabulary = json.loads((path.parent / "config.json").read_text(encoding="utf-8"))["vocab"]
            default = _default_voice(arguments)
            styles = {voice: _style(path.parent, voice) for voice in dict.fromkeys((default, *KOKORO_VOICES))}
            handler = cls(open_onnx_model(path, threads), vocabulary, styles, arguments.speed)
            handler._warm_up()
        except Exception as error:  # onnxruntime raises anything on a damaged file
            raise ModelLoadError(f"cannot load Kokoro from {path.parent}: {error}") from error
        return handler

    @property
    def capabilities(self) -> TextToSpeechCapabilities:
        return self._capabilities

    def synthesize(self, text: str, *, voice: str, speed: float, is_cancelled: IsCancelled) -> Iterator[Samples]:
        """One array per sentence, or part of a long one. `speed` multiplies `--tts_speed`. Text without a letter or
        digit yields nothing."""
        if voice and voice not in self._styles:
            raise StageError("tts", f"unknown voice {voice!r}; this model has {', '.join(self._styles)}")
        if not speed > 0:
            raise StageError("tts", f"speed must be above 0, got {speed}")
        return self._speech(text, voice or self._capabilities.voices[0], speed * self._speed, is_cancelled)

    def _speech(self, text: str, voice: str, speed: float, is_cancelled: IsCancelled) -> Iterator[Samples]:
        if is_cancelled():
            raise Cancelled
        for sentence in self._phonemes.sentences(text, "en-us" if voice.startswith("a") else "en-gb"):
            for phonemes in _split(sentence):
                try:
                    samples = self._run(phonemes, voice, speed)
                except Exception as error:
                    raise StageError("tts", f"Kokoro failed: {error}") from error
                if is_cancelled():
                    raise Cancelled
                yield samples

    def _run(self, phonemes: str, voice: str, speed: float) -> Samples:
        tokens = [self._vocabulary[phoneme] for phoneme in phonemes if phoneme in self._vocabulary]
        inputs = {
            "tokens": np.array([[_EDGE, *tokens, _EDGE]], np.int64),
            "style": self._styles[voice][len(tokens) - 1][np.newaxis],
            "speed": np.array([speed], np.float32),
        }
        (audio,) = self._session.run(["audio"], inputs)
        trimmer = SilenceTrimmer(_SAMPLE_RATE, lead_ms=_LEAD_MS, trail_ms=_TRAIL_MS)
        return np.concatenate((trimmer.process(np.asarray(audio, np.float32).reshape(-1)), trimmer.finish()))

    def _warm_up(self) -> None:
        """The first run allocates."""
        for _ in self.synthesize(_WARM_UP_TEXT, voice="", speed=1.0, is_cancelled=lambda: False):
            pass


def _default_voice(arguments: TTSArguments) -> str:
    """The voice the user named; a name left at its default is Piper's, and stands for Kokoro's own default here."""
    if arguments.voice == TTSArguments().voice:
        return next(iter(KOKORO_VOICES))
    if arguments.voice not in KOKORO_VOICES:
        raise ConfigurationError(f"--tts_voice {arguments.voice}: Kokoro has {', '.join(KOKORO_VOICES)}")
    return arguments.voice


def _style(folder: Path, voice: str) -> NDArray[np.float32]:
    """Mapped rather than read: of half a megabyte per voice few rows are used."""
    return np.memmap(folder / f"{voice}.bin", "<f4", "r").reshape(-1, 256)


def _split(phonemes: str) -> Iterator[str]:
    """Cut a sentence into parts of at most `_LONGEST` phonemes and about the same length, at its punctuation if any."""
    while len(phonemes) > _LONGEST:
        end = _part_end(phonemes)
        yield phonemes[:end].strip()
        phonemes = phonemes[end:].strip()
    yield phonemes


def _part_end(phonemes: str) -> int:
    even = len(phonemes) / ceil(len(phonemes) / _LONGEST)
    for boundary in (r"[,;:.!?] ", " "):
        if ends := [match.end() for match in re.finditer(boundary, phonemes[:_LONGEST])]:
            return min(ends, key=lambda end: abs(end - even))
    return _LONGEST

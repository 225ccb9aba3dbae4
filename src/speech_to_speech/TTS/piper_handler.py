"""Piper: small VITS voices on onnxruntime, many times faster than real time on two CPU threads.

`piper` is GPL-3.0-or-later and comes with the extra `local`; besides this file only `kokoro_phonemes.py` imports it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from speech_to_speech import models
from speech_to_speech.arguments_classes.tts_arguments import TTSArguments
from speech_to_speech.backend import Requirement
from speech_to_speech.errors import Cancelled, ConfigurationError, ModelLoadError, StageError
from speech_to_speech.models.onnx_model import open_onnx_model
from speech_to_speech.stage_types import IsCancelled, Samples, TextToSpeechCapabilities
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.TTS.espeak_text import for_espeak

_WARM_UP_TEXT = "Oh, no way! The capital of France is Paris. What do you think?"

_WARM_UP_PEAK = 0.8
"""The level the loudest sample of the warm-up text is brought to. Piper would scale each sentence to full level, which
makes a short "Sure!" 5 dB louder than the sentence after it; one gain per voice keeps clauses even. Measured peaks of
33 sentences were at most 1.15 times that of the median one, so what is louder than the warm-up is not clipped."""


class PiperTTS(TextToSpeech):
    """A Piper voice. Safe to call from several threads: espeak works behind piper's lock, onnxruntime needs none."""

    def __init__(self, voice: Any, speakers: dict[str, int], language: str, speed: float) -> None:
        self._voice = voice
        self._speakers = speakers
        self._speed = speed
        self._gain = 1.0
        self._capabilities = TextToSpeechCapabilities(
            streams_text=False,
            sample_rate=int(voice.config.sample_rate),
            voices=tuple(speakers),
            languages=(language,) if language else (),
        )

    requirements = (Requirement("piper", "piper-tts", "local"),)

    @classmethod
    def voice_names(cls) -> tuple[str, ...]:
        return (TTSArguments().voice,)

    @classmethod
    def check(cls, arguments: TTSArguments) -> None:
        super().check(arguments)
        if arguments.voice == "kokoro":
            raise ConfigurationError("--tts_voice kokoro: that is a backend of its own; use --tts kokoro")

    @classmethod
    def load(cls, arguments: TTSArguments, threads: int) -> PiperTTS:
        cls.check(arguments)
        path = models.resolve("tts", arguments.voice)
        try:
            description = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
            voice = _open_voice(path, description, threads)
            language = str(description.get("language", {}).get("code", "")).replace("_", "-")
            handler = cls(voice, _speakers(voice.config, path), language, arguments.speed)
            handler._warm_up()
        except Exception as error:  # onnxruntime and piper raise anything on a damaged file
            raise ModelLoadError(f"cannot load the Piper voice {path}: {error}") from error
        return handler

    @property
    def capabilities(self) -> TextToSpeechCapabilities:
        return self._capabilities

    def synthesize(self, text: str, *, voice: str, speed: float, is_cancelled: IsCancelled) -> Iterator[Samples]:
        """One array per sentence. `speed` multiplies `--tts_speed`. Text without a letter or digit yields nothing."""
        if voice and voice not in self._speakers:
            raise StageError("tts", f"unknown voice {voice!r}; this model has {', '.join(self._speakers)}")
        if not speed > 0:
            raise StageError("tts", f"speed must be above 0, got {speed}")
        speaker = self._speakers[voice] if voice else None
        return self._sentences(text, speaker, speed * self._speed, is_cancelled)

    def _sentences(self, text: str, speaker: int | None, speed: float, is_cancelled: IsCancelled) -> Iterator[Samples]:
        from piper.config import SynthesisConfig

        text = for_espeak(text, self._voice.config.espeak_voice)
        if not any(map(str.isalnum, text)):
            return
        settings = SynthesisConfig(
            speaker_id=speaker,
            length_scale=self._voice.config.length_scale / speed,
            normalize_audio=False,
            volume=self._gain,
        )
        if is_cancelled():
            raise Cancelled
        try:
            for chunk in self._voice.synthesize(text, settings):
                if is_cancelled():
                    raise Cancelled
                yield np.asarray(chunk.audio_float_array, dtype=np.float32).reshape(-1)
        except Cancelled:
            raise
        except Exception as error:
            raise StageError("tts", f"Piper failed: {error}") from error

    def _warm_up(self) -> None:
        """The first run allocates; it also tells how loud this voice is."""
        made = self.synthesize(_WARM_UP_TEXT, voice="", speed=1.0, is_cancelled=lambda: False)
        peak = max(float(np.abs(samples).max()) for samples in made)
        self._gain = _WARM_UP_PEAK / peak


def _open_voice(path: Path, description: dict[str, Any], threads: int) -> Any:
    """As `PiperVoice.load`, with our number of threads, which wait passively so that other stages get the cores."""
    from piper import PiperVoice
    from piper.config import PiperConfig

    session = open_onnx_model(path, threads)
    return PiperVoice(session=session, config=PiperConfig.from_dict(description))


def _speakers(config: Any, path: Path) -> dict[str, int]:
    """Speaker names and ids, the default first; a voice of one speaker has its file's name."""
    names = sorted(config.speaker_id_map.items(), key=lambda item: (item[1] != config.default_speaker_id, item[1]))
    return dict(names) or {path.stem: 0}

"""The interface of synthesisers. One instance serves all sessions of a process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from speech_to_speech.arguments_classes.tts_arguments import TTSArguments
from speech_to_speech.backend import Backend
from speech_to_speech.stage_types import IsCancelled, Samples, TextToSpeechCapabilities


class TextToSpeech(Backend, ABC):
    """A loaded synthesiser."""

    @classmethod
    @abstractmethod
    def load(cls, arguments: TTSArguments, threads: int) -> TextToSpeech:
        """Load the model. Raises `ModelLoadError`, `AssetError`, `MissingDependencyError`."""

    @classmethod
    def voice_names(cls) -> tuple[str, ...]:
        """Voices that `--tts_voice` takes and that are known without loading a model; there may be more."""
        return ()

    @property
    @abstractmethod
    def capabilities(self) -> TextToSpeechCapabilities: ...

    @abstractmethod
    def synthesize(self, text: str, *, voice: str, speed: float, is_cancelled: IsCancelled) -> Iterator[Samples]:
        """Speak one clause of plain, speakable text; yields audio at `capabilities.sample_rate` as it is made.

        `voice` is one of `capabilities.voices` or "" for the default. Raises `Cancelled` soon after `is_cancelled()`
        turned true, `StageError` when the model fails.
        """

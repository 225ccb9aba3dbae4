"""The interface of speech recognisers. One instance serves all sessions of a process."""

from __future__ import annotations

from abc import ABC, abstractmethod

from speech_to_speech.arguments_classes.stt_arguments import STTArguments
from speech_to_speech.backend import Backend
from speech_to_speech.stage_types import IsCancelled, Samples, SpeechToTextCapabilities, Transcript


class RecognitionStream(ABC):
    """One utterance being recognised. Used by one thread at a time."""

    @abstractmethod
    def accept(self, samples: Samples) -> None:
        """Append audio (16 kHz mono). Cheap: no model runs here."""

    @abstractmethod
    def decode(self, *, final: bool, is_cancelled: IsCancelled) -> Transcript:
        """Transcribe what was accepted so far.

        Partial decodes grow `Transcript.stable` by the words two successive decodes agree on; what was once stable
        is a prefix of every later transcript of this stream, the final one included.
        A final decode may be followed by more audio (the user went on) and another decode.
        Raises `Cancelled` within about 100 ms after `is_cancelled()` turned true, `StageError` when the model fails.
        """


class SpeechToText(Backend, ABC):
    """A loaded recogniser."""

    @classmethod
    @abstractmethod
    def load(cls, arguments: STTArguments, threads: int) -> SpeechToText:
        """Load the model. Raises `ModelLoadError`, `AssetError`, `MissingDependencyError`."""

    @property
    @abstractmethod
    def capabilities(self) -> SpeechToTextCapabilities: ...

    @abstractmethod
    def open(self, *, language: str = "", prompt: str = "") -> RecognitionStream:
        """Start an utterance. `language`: BCP-47 code or "" for automatic; `prompt`: text that biases spelling."""

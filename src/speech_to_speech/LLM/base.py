"""The interface of language models. One instance serves all conversations of a process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from speech_to_speech.arguments_classes.llm_arguments import LLMArguments
from speech_to_speech.backend import Backend
from speech_to_speech.stage_types import GenerateRequest, GenerationPiece, IsCancelled, LanguageModelCapabilities


class LanguageModel(Backend, ABC):
    """A loaded language model."""

    @classmethod
    @abstractmethod
    def load(cls, arguments: LLMArguments, threads: int) -> LanguageModel:
        """Load the model. Raises `ModelLoadError`, `AssetError`, `MissingDependencyError`."""

    @property
    @abstractmethod
    def capabilities(self) -> LanguageModelCapabilities: ...

    @abstractmethod
    def generate(self, request: GenerateRequest, is_cancelled: IsCancelled) -> Iterator[GenerationPiece]:
        """Answer `request`, piece by piece, ending with `GenerationDone`.

        Blocks between pieces; called in a worker thread, concurrently for different conversations.
        Raises `Cancelled` within 250 ms after `is_cancelled()` turned true, prefill included; `ContextOverflowError`
        when the prompt cannot fit; `StageError` when the model fails.
        """

    @abstractmethod
    def release(self, conversation: str) -> None:
        """The conversation has ended; its cache may be reused. Unknown names are ignored."""

    @abstractmethod
    def close(self) -> None:
        """Free the model. No call may follow."""

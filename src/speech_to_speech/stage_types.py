"""Value types that cross the stage boundaries: requests, results and capabilities.

Everything here is immutable and picklable, so that a runtime may place a stage in a thread, a process or on
another machine without the session knowing. Audio between the stages is mono float32 in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.float32]
"""Mono audio, shape `[samples]`, float32 in [-1, 1]."""

IsCancelled: TypeAlias = Callable[[], bool]
"""Asked by a stage between its steps; true once the request's result is no longer wanted."""

RECOGNITION_RATE = 16_000
"""Sample rate in Hz of everything that listens: VAD, turn detection and STT."""

VAD_FRAME_SAMPLES = 512
"""Samples per VAD frame at `RECOGNITION_RATE`: 32 ms."""

VAD_FRAME_MS = 1000 * VAD_FRAME_SAMPLES // RECOGNITION_RATE


# --- capabilities -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpeechToTextCapabilities:
    """What a recogniser can do. `languages` is empty when any language is accepted (BCP-47 codes otherwise)."""

    partials: bool
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LanguageModelCapabilities:
    """What a language model can do. `context_tokens` is the room of one conversation, prompt and answer together."""

    prefill: bool
    tools: bool
    context_tokens: int


@dataclass(frozen=True, slots=True)
class TextToSpeechCapabilities:
    """What a synthesiser can do.

    `streams_text`: takes text as it is written; otherwise the shared clause chunker feeds it.
    `sample_rate` in Hz. `voices` are the names a client may ask for; the first is the default.
    """

    streams_text: bool
    sample_rate: int
    voices: tuple[str, ...]
    languages: tuple[str, ...] = ()


# --- chat ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One function call of the model. `arguments` is the JSON text as the model wrote it."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the prompt. `tool_calls` only on assistant messages, `call_id` only on tool results."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call. `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one generation, counted by the model that ran."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


# --- requests: what the sans-I/O core asks of the stages ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DetectSpeechRequest:
    """One VAD frame. `index` counts frames of this session from 0; `samples` has `VAD_FRAME_SAMPLES` values."""

    index: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class PredictTurnEndRequest:
    """Is the user's turn complete? `samples`: the turn so far at `RECOGNITION_RATE`, silence at its end included."""

    token: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class TranscribeRequest:
    """Decode an utterance.

    `samples` is the *new* audio, to be appended at `offset` (samples from the utterance's start) of utterance
    `utterance`; earlier requests delivered what lies before. `final` asks for the definitive transcript.
    `language` is a BCP-47 code or "" for automatic; `prompt` is text that biases the spelling.
    """

    token: int
    utterance: int
    offset: int
    samples: Samples
    final: bool
    language: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class ForgetUtterance:
    """No more decodes of this utterance will come; its state may be freed."""

    utterance: int


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One answer of the language model.

    `conversation` names the KV cache to reuse. With `prefill_only` nothing is generated: the prompt is read into
    the cache, so that a later request with the same beginning starts at once.
    `max_tokens` None means the model's own limit. `tool_choice` is "auto", "none", "required" or a function's name.
    """

    token: int
    conversation: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    max_tokens: int | None = None
    prefill_only: bool = False
    speculative: bool = False


@dataclass(frozen=True, slots=True)
class SpeakRequest:
    """More text of one reply to be spoken, in the order it was written; `end` marks the last piece.

    The first request of a token opens the speech. `speed` scales the tempo, 1.0 is the voice's own.
    `deadline` is the time (seconds, the session's clock) at which the listener runs out of audio.
    """

    token: int
    text: str
    end: bool
    voice: str = ""
    speed: float = 1.0
    speculative: bool = False
    deadline: float = 0.0


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """The result of `token` is no longer wanted; free what it holds."""

    token: int


StageRequest: TypeAlias = (
    DetectSpeechRequest
    | PredictTurnEndRequest
    | TranscribeRequest
    | ForgetUtterance
    | GenerateRequest
    | SpeakRequest
    | CancelRequest
)


# --- results: what the stages bring back --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpeechProbability:
    """VAD's answer for frame `index`."""

    index: int
    probability: float


@dataclass(frozen=True, slots=True)
class TurnEndProbability:
    """The turn detector's answer: how likely the user has finished."""

    token: int
    probability: float


SENTENCE_ENDS = (".", "?", "!", "。", "？", "！")


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a recogniser returns for one decode.

    `text` is the whole utterance as now understood, "" when it holds no speech. `stable` is the prefix of `text`
    that no later decode of this utterance will change (empty on backends without partials). A final transcript is
    stable as a whole, unless the user goes on: then only what partial ones called stable is.
    """

    text: str
    stable: str
    final: bool
    language: str = ""

    @property
    def reads_finished(self) -> bool:
        """Whether `text` ends like a sentence."""
        return self.text.endswith(SENTENCE_ENDS) and not self.text.endswith("...")


@dataclass(frozen=True, slots=True)
class TranscriptResult:
    """A `Transcript` on its way to the session."""

    token: int
    transcript: Transcript


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the model's answer."""

    text: str


@dataclass(frozen=True, slots=True)
class GenerationDone:
    """The end of an answer. `reason`: "stop", "length" (token limit) or "tool_calls"."""

    reason: Literal["stop", "length", "tool_calls"]
    usage: Usage = field(default_factory=Usage)


GenerationPiece: TypeAlias = TextDelta | ToolCall | GenerationDone


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """One piece of an answer on its way to the session."""

    token: int
    piece: GenerationPiece


@dataclass(frozen=True, slots=True)
class SpeechPiece:
    """The next audio of one reply.

    `samples` at the synthesiser's rate. `text_start`, `text_end`: the characters of the text fed so far that this
    piece speaks; pieces of one clause carry the same span. `clause_end` marks a clause's last piece.
    """

    samples: Samples
    sample_rate: int
    text_start: int
    text_end: int
    clause_end: bool


@dataclass(frozen=True, slots=True)
class SpeechResult:
    """One `SpeechPiece` on its way to the session."""

    token: int
    piece: SpeechPiece


@dataclass(frozen=True, slots=True)
class SpeechDone:
    """All text of the reply that was marked as its end has been spoken."""

    token: int


@dataclass(frozen=True, slots=True)
class StageFailure:
    """The request `token` failed in `stage`. `message` is one line for the client."""

    token: int
    stage: Literal["vad", "turn", "stt", "llm", "tts"]
    message: str


StageResult: TypeAlias = (
    SpeechProbability
    | TurnEndProbability
    | TranscriptResult
    | GenerationResult
    | SpeechResult
    | SpeechDone
    | StageFailure
)

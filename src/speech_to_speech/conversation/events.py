"""What a conversation tells the protocol above it. Each event happened once, in the order given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from speech_to_speech.conversation.history import Item
from speech_to_speech.conversation.reply import Reply
from speech_to_speech.conversation.timeline import TurnTimeline
from speech_to_speech.stage_types import StageRequest, ToolCall

ReplyStatus: TypeAlias = Literal["completed", "cancelled", "incomplete", "failed"]
ReplyEndReason: TypeAlias = Literal["turn_detected", "client_cancelled", "max_output_tokens", ""]


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The user began to speak; `audio_start_ms` includes the prefix padding."""

    item_id: str
    audio_start_ms: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The user's turn ended; `audio_end_ms` includes the silence that ended it."""

    item_id: str
    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class InputCommitted:
    """The input buffer became `item`, which stands in the history."""

    item: Item


@dataclass(frozen=True, slots=True)
class TranscriptDelta:
    """More of a user's turn is certain; deltas concatenate to the completed transcript."""

    item_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class TranscriptCompleted:
    """A user's turn is transcribed; "" when it held no speech."""

    item_id: str
    transcript: str
    audio_seconds: float


@dataclass(frozen=True, slots=True)
class TranscriptFailed:
    """A user's turn could not be transcribed."""

    item_id: str
    message: str


@dataclass(frozen=True, slots=True)
class ReplyOpened:
    """A reply has become real: from here on its content goes to the client."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class ReplyItemAdded:
    """The reply's message or function call stands in the history."""

    reply: Reply
    item: Item


@dataclass(frozen=True, slots=True)
class ReplyText:
    """More text of the reply's message (its transcript when it is spoken)."""

    reply: Reply
    item: Item
    delta: str


@dataclass(frozen=True, slots=True)
class ReplyAudio:
    """More audio of the reply's message, PCM16 at 24 kHz."""

    reply: Reply
    item: Item
    pcm: bytes | memoryview


@dataclass(frozen=True, slots=True)
class ReplyItemDone:
    """One of the reply's items is final. `call` only for function calls."""

    reply: Reply
    item: Item
    call: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """The reply is over; `error` tells what failed."""

    reply: Reply
    status: ReplyStatus
    reason: ReplyEndReason = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class StageFailed:
    """A stage failed outside any reply and transcript."""

    message: str


@dataclass(frozen=True, slots=True)
class TurnMeasured:
    """A turn's timeline is complete: everything that was sent has been played, or was cut."""

    timeline: TurnTimeline


ConversationEvent: TypeAlias = (
    SpeechStarted
    | SpeechStopped
    | InputCommitted
    | TranscriptDelta
    | TranscriptCompleted
    | TranscriptFailed
    | ReplyOpened
    | ReplyItemAdded
    | ReplyText
    | ReplyAudio
    | ReplyItemDone
    | ReplyEnded
    | StageFailed
    | TurnMeasured
)

Output: TypeAlias = ConversationEvent | StageRequest

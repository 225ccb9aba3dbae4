"""One answer of the assistant, from speculation to its last heard word."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from speech_to_speech.conversation.history import ContentPart, Item
from speech_to_speech.conversation.spoken_text import SpokenText
from speech_to_speech.conversation.timeline import TurnTimeline
from speech_to_speech.stage_types import GenerationDone, Tool, ToolCall, Usage

PCM_BYTES_PER_MS = 48
"""PCM16 mono at 24 kHz."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """The operator's choices about when work is done and sent.

    `lead_ms`: audio goes out at most this far ahead of its playback; 0 sends it as soon as it is made.
    `speculate`: transcribe and answer during the user's pause, behind the gate; otherwise only after the turn's end.
    `whole_answers`: send no audio before all of the answer is spoken. The classic way, kept to be measured against.
    """

    lead_ms: float = 200.0
    speculate: bool = True
    whole_answers: bool = False


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """What a reply is made with: the session's settings, or one response's overrides of them."""

    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    spoken: bool = True
    voice: str = ""
    speed: float = 1.0
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SpokenPiece:
    """Synthesised audio on its way out: PCM16 at 24 kHz and the characters of the reply it speaks."""

    pcm: bytes | memoryview
    text_start: int
    text_end: int
    clause_end: bool

    @property
    def duration_ms(self) -> float:
        """Length of the audio in ms."""
        return len(self.pcm) / PCM_BYTES_PER_MS

    def split(self, duration_ms: float) -> tuple[SpokenPiece, SpokenPiece | None]:
        """The first `duration_ms` (whole ms), and what is left of the piece, if anything."""
        if duration_ms >= self.duration_ms:
            return self, None
        cut = int(duration_ms + 1e-6) * PCM_BYTES_PER_MS
        pcm = memoryview(self.pcm)
        first = SpokenPiece(pcm[:cut], self.text_start, self.text_end, False)
        return first, SpokenPiece(pcm[cut:], self.text_start, self.text_end, self.clause_end)


@dataclass(slots=True, eq=False)
class Reply:
    """State of one reply.

    While it is not `opened` (the gate), its text and audio gather here and nothing reaches history or client.
    """

    id: str
    token: int
    settings: ReplySettings
    timeline: TurnTimeline
    opened: bool = False
    ended: bool = False
    text: str = ""
    """All text generated so far."""
    announced_text: int = 0
    """Characters of `text` the client has got."""
    calls: list[ToolCall] = field(default_factory=list)
    announced_calls: int = 0
    audio: deque[SpokenPiece] = field(default_factory=deque)
    """Audio not yet sent."""
    spoken: SpokenText = field(default_factory=SpokenText)
    """Which audio speaks which characters, as far as it was made."""
    message: Item | None = None
    """The message item, once there is content and the gate is open."""
    items: list[Item] = field(default_factory=list)
    generation_started: bool = False
    generation: GenerationDone | None = None
    speech_done: bool = False
    error: str = ""

    @property
    def usage(self) -> Usage:
        """Tokens counted by the model; zeros until it has finished."""
        return self.generation.usage if self.generation else Usage()

    @property
    def part(self) -> ContentPart | None:
        """The message's content part."""
        return self.message.content[0] if self.message else None

    def new_message(self, item_id: str) -> Item:
        """The message item of this reply, empty."""
        if self.settings.spoken:
            part = ContentPart("output_audio", text="", spoken=self.spoken)
        else:
            part = ContentPart("output_text", text="")
        return Item(id=item_id, role="assistant", status="in_progress", content=[part])

    @property
    def finished_making(self) -> bool:
        """Everything was generated, spoken and sent."""
        return self.generation is not None and self.speech_done and not self.audio

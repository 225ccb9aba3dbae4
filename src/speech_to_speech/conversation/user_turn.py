"""The user's turn in progress: its audio, its newest transcript, and what is being asked about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from speech_to_speech.conversation.timeline import TurnTimeline
from speech_to_speech.stage_types import Transcript


@dataclass(slots=True)
class Decode:
    """A transcription in flight: its token, whether it asks for the final text, and the audio it covers."""

    token: int
    final: bool
    covers: int
    """One past the last sample (16 kHz, session position) it hears."""


@dataclass(slots=True, eq=False)
class UserTurn:
    """Positions are samples at 16 kHz from the start of the session's audio."""

    item_id: str
    utterance: int
    start: int
    announced: bool
    """`speech_started` went out. False while it is a suspected barge-in."""
    timeline: TurnTimeline = field(default_factory=TurnTimeline)
    handed_over: int = 0
    """One past the last sample given to the recogniser."""
    decode: Decode | None = None
    transcript: Transcript | None = None
    transcript_covers: int = 0
    stable: str = ""
    """The part of the transcript the client has got as deltas."""
    question: int | None = None
    """Token of the turn detector's call in flight."""
    questions_asked: int = 0
    p_complete: float | None = None
    suspected_at: float | None = None
    """When the assistant was interrupted by what may be no interruption."""
    wants_reply: bool = False
    """The turn ended so that a reply is owed for it, unless it says nothing."""
    words_read: int = 0
    """Words of the partial transcript that the language model has read ahead."""
    end: int | None = None
    """One past the turn's last sample, once it has ended."""

    @property
    def ended(self) -> bool:
        """True once the turn is over, its transcript possibly still to come."""
        return self.end is not None

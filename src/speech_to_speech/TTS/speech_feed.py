"""One reply on its way to sound: text as it is written → clauses → audio that knows which characters it speaks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from speech_to_speech.stage_types import IsCancelled, Samples, SpeechPiece
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.TTS.clause_chunker import Boundary, Clause, ClauseChunker, ClauseChunking
from speech_to_speech.TTS.silence_trim import SilenceTrimmer
from speech_to_speech.TTS.speakable_text import SpeakableText


@dataclass(frozen=True, slots=True)
class Pauses:
    """The most silence around clauses, in ms. Only shortens what a voice makes (Piper: 30-60 before, 100-240 after)."""

    before: float = 20.0  # keeps soft onsets; heard as part of the wait for the reply
    after_sentence: float = 200.0
    after_comma: float = 130.0
    after_phrase: float = 20.0  # the sentence goes on without a pause

    def after(self, boundary: Boundary) -> float:
        return {"sentence": self.after_sentence, "comma": self.after_comma, "phrase": self.after_phrase}[boundary]


@dataclass(frozen=True, slots=True)
class SpeakableClause:
    """What to say for the characters `start` to `end` of the reply; `text` is "" when that is nothing."""

    text: str
    start: int
    end: int
    boundary: Boundary


class SpeechFeed:
    """The speech of one reply. `add` is cheap and never waits; `speak` runs the model.

    `add` may be called from one thread while another takes clauses with `next_clause` and speaks them, in order, one
    at a time. The spans of the pieces cover every character that was added, without gaps: characters with nothing to
    say belong to the clause after them, and at the end of the reply to a piece without samples.
    """

    def __init__(
        self,
        synthesizer: TextToSpeech,
        *,
        voice: str = "",
        speed: float = 1.0,
        chunking: ClauseChunking | None = None,
        pauses: Pauses | None = None,
    ) -> None:
        self._synthesizer = synthesizer
        self._voice = voice
        self._speed = speed
        self._pauses = pauses or Pauses()
        self._chunker = ClauseChunker(chunking)
        self._speakable = SpeakableText()
        self._waiting: deque[SpeakableClause] = deque()
        self._received = 0
        self._unspoken_start = 0  # the first character no queued clause covers
        self._queued = 0
        self._spoken = 0
        self._ended = False

    @property
    def done(self) -> bool:
        """Whether the text has ended and all of it was spoken; a reply without text is done as soon as it ended."""
        return self._ended and self._spoken == self._queued

    def add(self, text: str, end: bool) -> list[SpeakableClause]:
        """Take the next text, `end` with the last; return the clauses that were queued for `next_clause`."""
        clauses = self._chunker.feed(text)
        if end:
            clauses += self._chunker.finish()
        queued = [clause for clause in map(self._prepare, clauses) if clause is not None]
        self._received += len(text)
        if end and self._unspoken_start < self._received:
            queued.append(SpeakableClause("", self._unspoken_start, self._received, "sentence"))
        self._queued += len(queued)
        self._waiting.extend(queued)
        self._ended = end
        return queued

    def next_clause(self) -> SpeakableClause | None:
        """The next clause to speak, None when no text is waiting."""
        return self._waiting.popleft() if self._waiting else None

    def speak(self, clause: SpeakableClause, is_cancelled: IsCancelled) -> Iterator[SpeechPiece]:
        """Synthesise one clause. Its last piece may hold no samples.

        Raises what `TextToSpeech.synthesize` raises.
        """
        rate = self._synthesizer.capabilities.sample_rate
        trimmer = SilenceTrimmer(rate, lead_ms=self._pauses.before, trail_ms=self._pauses.after(clause.boundary))

        def piece(samples: Samples, clause_end: bool) -> SpeechPiece:
            return SpeechPiece(samples, rate, clause.start, clause.end, clause_end)

        if clause.text:
            made = self._synthesizer.synthesize(
                clause.text, voice=self._voice, speed=self._speed, is_cancelled=is_cancelled
            )
            for samples in made:
                audible = trimmer.process(samples)
                if len(audible):
                    yield piece(audible, False)
        self._spoken += 1
        yield piece(trimmer.finish(), True)

    def _prepare(self, clause: Clause) -> SpeakableClause | None:
        text = self._speakable.feed(clause.text)
        if not text:
            return None
        start, self._unspoken_start = self._unspoken_start, clause.end
        return SpeakableClause(_punctuated(text, clause.boundary), start, clause.end, clause.boundary)


def _punctuated(text: str, boundary: Boundary) -> str:
    """Voices take their intonation from the final mark; without one they stop abruptly."""
    if text[-1] in ".!?。！？｡" or text.endswith(('."', '!"', '?"', ".”", "!”", "?”", ".)", "!)", "?)")):
        return text
    if boundary == "sentence":
        return text.rstrip(",;:—–- ") + "."
    return text if text[-1] in ",;:—，、；：､" else text + ","

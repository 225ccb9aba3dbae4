"""Which words of a text have been heard when so many milliseconds of its audio have been played."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class _Span:
    text_start: int
    text_end: int
    start_ms: float
    end_ms: float


@dataclass(slots=True)
class SpokenText:
    """A text and the times of its clauses.

    Within a clause a word's end is placed in proportion to its characters: with 40 characters in 2,000 ms, a word
    that ends at character 10 of the clause has been heard at 500 ms.
    """

    text: str = ""
    duration_ms: float = 0.0
    _spans: list[_Span] = field(default_factory=list)
    _open_start_ms: float | None = None

    def add(self, text_start: int, text_end: int, duration_ms: float, *, clause_end: bool) -> None:
        """The next `duration_ms` of audio speak characters `[text_start, text_end)` of `text`.

        Pieces of one clause carry the same span; `clause_end` marks the last one.
        """
        start = self.duration_ms if self._open_start_ms is None else self._open_start_ms
        if self._open_start_ms is not None:
            self._spans.pop()
        self.duration_ms += duration_ms
        self._spans.append(_Span(text_start, text_end, start, self.duration_ms))
        self._open_start_ms = None if clause_end else start

    def heard(self, position_ms: float) -> str:
        """The text up to the last word whose audio ended by `position_ms`."""
        heard_end = 0
        for span in self._spans:
            if position_ms >= span.end_ms:
                heard_end = span.text_end
            elif position_ms > span.start_ms:
                return self.text[: max(heard_end, self._last_word_end(span, position_ms))].rstrip()
        return self.text[:heard_end].rstrip()

    def _last_word_end(self, span: _Span, position_ms: float) -> int:
        clause = self.text[span.text_start : span.text_end]
        spoken = clause.strip()
        if not spoken:
            return span.text_start
        lead = len(clause) - len(clause.lstrip())
        reached = len(spoken) * (position_ms - span.start_ms) / (span.end_ms - span.start_ms)
        end = span.text_start
        for word in _WORD.finditer(spoken):
            if word.end() > reached + 1e-6:
                break
            end = span.text_start + lead + word.end()
        return end

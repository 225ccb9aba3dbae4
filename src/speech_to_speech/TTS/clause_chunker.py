"""Cuts a language model's text, as it is written, into clauses for synthesisers that cannot stream text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from speech_to_speech.TTS.abbreviations import keeps_stop, keeps_stop_before, needs_following
from speech_to_speech.TTS.phrase_words import opens_phrase

Boundary: TypeAlias = Literal["sentence", "comma", "phrase"]
"""What ends a clause: a sentence end or line break; a comma and its like; no punctuation at all."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of the reply to be spoken at once; `start` and `end` are offsets into all text fed so far."""

    text: str
    start: int
    end: int
    boundary: Boundary


@dataclass(frozen=True, slots=True)
class ClauseChunking:
    """How long clauses may grow. All lengths in characters; a CJK character counts as `_WIDE` of them.

    A sentence end always cuts. The other cuts trade prosody for time: until the first clause is complete the
    listener hears nothing, and a model that writes 22 tokens/s needs 350 ms for a short sentence. Speech takes about
    15 characters/s and such a model writes about 90, so while a clause plays, six times its length is written;
    half of that is left for synthesis and for slower moments. Hence a clause may be `growth` times as long as
    everything cut before it, and the first one is cut where a person who thinks aloud would breathe.
    """

    comma_first: int = 4  # "Sure, …": about 0.5 s of audio, in which the next clause is written and made
    comma_later: int = 70  # a pause in mid-sentence that is only the chunker's should come after a breath's length
    phrase_first: int = 14  # "The moon is about | 384,400 km away": about 1 s of audio
    phrase_later: int = 240  # a sentence of 16 s without a comma
    longest: int = 400  # text without any of the above (base64, endless lists) is cut at a space, or right here
    growth: float = 3.0
    eager_first: bool = True
    """Whether the first clause is cut as if the newest character ended its word: a full stop after a plain word, a word
    that opens a phrase. Waiting for the character after it costs a token (25 to 45 ms), at the end of a one-sentence
    reply too, whose end is a token of its own. What it risks is a pause in "example.com" where the model's tokens split
    it behind the stop, and one before "together" where they split it behind "to"."""


_PHRASE_WORDS = 3
"""Words a clause has at least that ends without punctuation: a name alone is no phrase."""

_WIDE = 3
"""A CJK character is a syllable or more: about 5 are spoken per second, against 15 Latin letters."""

_SENTENCE_MARKS = "!?。！？｡"
_COMMA_MARKS = ",;—…，、；：､"
_ASCII_MARKS = ",;!?"
_CLOSERS = "\"'”’»)]}*_`~"
"""What may stand between a full stop and the space after it."""

_CJK = re.compile(r"[぀-ヿ㐀-鿿가-힯豈-﫿]")
_ENTITY = re.compile(r"&#?\w+$")
_LINE_START = re.compile(r"[\s>*#+-]*")

_PROTECTED_LONGEST = 80
"""An opening backtick, bracket or tag that is not closed within this many characters is not Markdown."""

_Cut: TypeAlias = tuple[int, Boundary]
"""Where a clause ends, as an index into the pending text, and by what."""


class _NeedMoreText(Exception):
    """The decision at this character depends on characters that are not written yet."""


class ClauseChunker:
    """Feed the deltas of one reply, then `finish`.

    The clauses partition the text. Where they are cut depends on the text alone, not on how it came in deltas, but
    for `ClauseChunking.eager_first`.
    """

    def __init__(self, chunking: ClauseChunking | None = None) -> None:
        self._chunking = chunking or ClauseChunking()
        self._pending = ""  # text since the last cut
        self._pending_start = 0
        self._scanned = 0  # characters of `_pending` that are decided: no cut there
        self._size = 0  # weighted length of what is scanned
        self._cut_size = 0  # weighted length of all clauses so far
        self._before = "\n"  # the last character before `_pending`
        self._closing = ""  # the character that ends the code span, link or tag being scanned
        self._opened = 0  # where in `_pending` it began
        self._final = False

    def feed(self, delta: str) -> list[Clause]:
        """Take the next text, return the clauses that became complete."""
        self._pending += delta
        return list(self._complete_clauses())

    def finish(self) -> list[Clause]:
        """The reply's text ended: return what is left. No `feed` may follow."""
        self._final = True
        clauses = list(self._complete_clauses())
        if self._pending:
            clauses.append(self._cut(len(self._pending), "sentence"))
        return clauses

    def _complete_clauses(self) -> Iterator[Clause]:
        while self._scanned < len(self._pending):
            index = self._scanned
            try:
                cut = self._decide(index)
            except _NeedMoreText:
                return
            if cut is not None:
                yield self._cut(*cut)
                continue
            self._track_markdown(index)
            self._scanned += 1
            self._size += _weight(self._pending[index])

    def _cut(self, end: int, boundary: Boundary) -> Clause:
        text, self._pending = self._pending[:end], self._pending[end:]
        start, self._pending_start = self._pending_start, self._pending_start + end
        self._cut_size += sum(map(_weight, text))
        self._before = text[-1]
        self._scanned = self._size = self._opened = 0
        self._closing = ""
        return Clause(text, start, start + end, boundary)

    # --- the decision at one character -----------------------------------------------------------------------------

    def _decide(self, index: int) -> _Cut | None:
        """Whether the clause ends at this character. Looks only as far ahead as it asks for, so that the answer does
        not depend on how much text has arrived."""
        character = self._pending[index]
        if self._size >= self._chunking.longest:
            return self._longest_cut(index), "phrase"
        if character == "\n":
            return (index + 1, "sentence") if _has_words(self._pending[:index]) else None
        if self._is_protected(index):
            return None
        if character.isspace():
            return self._phrase_cut(index)
        boundary_end = self._mark_end(index)
        if boundary_end is None:
            return None
        end, boundary = boundary_end
        if boundary == "sentence":
            return boundary_end if _has_words(self._pending[:end]) else None
        return boundary_end if self._is_long_enough(self._pending[:end]) else None

    def _mark_end(self, index: int) -> _Cut | None:
        """The end of the clause if the character at `index` is punctuation that ends one."""
        character = self._pending[index]
        if character == ".":
            return self._full_stop(index)
        if character == ":":
            end = self._past_closers(index)
            return (end, "comma") if not self._previous(index).isspace() and self._is_space(end) else None
        if character in "-–":
            dash = (self._previous(index).isspace() or self._previous(index) == "-") and self._is_space(index + 1)
            return (index + 1, "comma") if dash else None
        if character not in _SENTENCE_MARKS and character not in _COMMA_MARKS:
            return None
        if character in _ASCII_MARKS and self._is_inside_word(index):
            return None
        return index + 1, ("sentence" if character in _SENTENCE_MARKS else "comma")

    def _is_inside_word(self, index: int) -> bool:
        """ASCII marks within 1,000, &amp; and addresses, or standing alone as in `a != b` and smileys."""
        character, token = self._pending[index], self._token_before(index)
        if character == ";" and _ENTITY.search(token):
            return True
        if character == "," and self._previous(index).isdigit():
            return self._at(index + 1).isdigit()
        return (not token or _is_address(token)) and not self._is_space(index + 1)

    def _full_stop(self, index: int) -> _Cut | None:
        if self._is_eager(index):
            return index + 1, "sentence"
        if self._at(index + 1) == ".":
            return None  # the last stop of an ellipsis decides
        end = self._past_closers(index)
        if not self._is_space(end) and not _CJK.match(self._at(end)):
            return None  # 3.14, example.com, U.S.
        if self._previous(index) == ".":
            return end, "comma"
        word = self._token_before(index).lstrip("\"'“‘«([{*_`")
        if keeps_stop(word) or (needs_following(word) and keeps_stop_before(word, self._first_after(end))):
            return None
        if word.isdigit() and self._starts_line(index - len(word)):
            return None  # the number of a list item
        return end, "sentence"

    def _is_eager(self, index: int) -> bool:
        if not self._is_newest(index + 1):
            return False
        word = self._token_before(index)
        return len(word) >= 3 and word.isalpha() and not keeps_stop(word) and not needs_following(word)

    def _phrase_cut(self, index: int) -> _Cut | None:
        """A cut before this space, when the sentence has grown long and the next word opens a phrase."""
        limits = self._chunking
        if self._size < self._limit(limits.phrase_first, limits.phrase_later):
            return None
        before = self._token_before(index)
        if not before[-1:].isalnum() or len(self._pending[:index].split()) < _PHRASE_WORDS:
            return None
        end = index + 1
        if not self._at(end).isdigit():
            while not self._is_newest(end) and self._at(end).isalpha():
                end += 1
            if not self._is_newest(end) and not self._is_space(end):
                return None
        return (index, "phrase") if opens_phrase(self._pending[index + 1 : end + 1].rstrip(), before) else None

    def _is_newest(self, index: int) -> bool:
        """Whether the text so far ends at `index` and the first clause should not wait for more."""
        return self._chunking.eager_first and not self._cut_size and index == len(self._pending)

    def _longest_cut(self, index: int) -> int:
        for end in range(index, index // 2, -1):
            if self._pending[end].isspace():
                return end
        return index

    def _is_long_enough(self, text: str) -> bool:
        """Whether a comma may end a clause that consists of `text`."""
        limits = self._chunking
        limit = self._limit(limits.comma_first, limits.comma_later)
        if sum(map(_weight, text)) >= limit:
            return _has_words(text)
        return limit == limits.comma_first and len(re.findall(r"\w+", text)) >= 2

    def _limit(self, first: int, later: int) -> float:
        return min(max(first, self._chunking.growth * self._cut_size), later)

    # --- looking around --------------------------------------------------------------------------------------------

    def _at(self, index: int) -> str:
        """The character at `index`, "" past the end of the reply."""
        if index < len(self._pending):
            return self._pending[index]
        if self._final:
            return ""
        raise _NeedMoreText

    def _is_space(self, index: int) -> bool:
        character = self._at(index)
        return character == "" or character.isspace()

    def _previous(self, index: int) -> str:
        return self._pending[index - 1] if index else self._before

    def _past_closers(self, index: int) -> int:
        """The end of the mark at `index` together with the quotes and brackets it closes."""
        end = index + 1
        while self._at(end) and self._at(end) in _CLOSERS:
            end += 1
        return end

    def _first_after(self, index: int) -> str:
        while self._at(index).isspace():
            index += 1
        return self._at(index)

    def _token_before(self, index: int) -> str:
        """The characters between the last space and `index`."""
        start = index
        while start and not self._pending[start - 1].isspace():
            start -= 1
        return self._pending[start:index]

    def _starts_line(self, index: int) -> bool:
        line_start = self._pending.rfind("\n", 0, index) + 1
        if line_start == 0 and self._before != "\n":
            return False
        return _LINE_START.fullmatch(self._pending, line_start, index) is not None

    # --- Markdown whose commas and stops are not the sentence's ----------------------------------------------------

    def _is_protected(self, index: int) -> bool:
        return self._closing != "" and index - self._opened <= _PROTECTED_LONGEST

    def _track_markdown(self, index: int) -> None:
        """Note where `code`, [link](address) and <tag> begin and end."""
        character, previous = self._pending[index], self._previous(index)
        if character == "\n" or character == self._closing:
            self._closing = ""
        elif not self._is_protected(index):
            if previous == "<" and (character.isalpha() or character in "/!"):
                self._closing = ">"
            elif previous == "]" and character == "(":
                self._closing = ")"
            else:
                self._closing = {"`": "`", "[": "]"}.get(character, "")
            self._opened = index


def _weight(character: str) -> int:
    return _WIDE if _CJK.match(character) else 1


def _has_words(text: str) -> bool:
    """Whether there is something to say: two letters or digits, or one CJK character."""
    return sum(map(str.isalnum, text)) >= 2 or _CJK.search(text) is not None


def _is_address(token: str) -> bool:
    return "://" in token or "@" in token or token.startswith("www.")

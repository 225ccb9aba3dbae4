"""Turns what a language model writes into what should be said: no Markdown, no emoji, no code, no addresses."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import TypeAlias

CODE_BLOCK_PHRASE = "The code is in the transcript."
"""Said once in place of each fenced code block; the transcript keeps the original text."""


class SpeakableText:
    """Feed the clauses of one reply in order. Stateful, since a code block goes on over many clauses."""

    def __init__(self, code_block_phrase: str = CODE_BLOCK_PHRASE) -> None:
        self._code_block_phrase = code_block_phrase
        self._fence = ""  # the marker that closes the code block being skipped
        self._at_line_start = True

    def feed(self, clause: str) -> str:
        """Return what to say for this clause, "" when there is nothing."""
        return " ".join(filter(None, map(self._line, clause.splitlines(keepends=True))))

    def _line(self, line: str) -> str:
        begins, self._at_line_start = self._at_line_start, line.endswith(("\n", "\r"))
        if self._fence:
            if not begins or not line.lstrip().startswith(self._fence):
                return ""
            line = line.lstrip().lstrip(self._fence)
            self._fence = ""
        opening = _FENCE.search(line)
        if opening and (opening["before"] == "" or line.endswith("\n")):
            self._fence = opening["fence"]
            line = f"{opening['before']} {self._code_block_phrase}"
        if begins:
            line = _without_line_markup(line)
        text = _without_inline_markup(line)
        return text if any(map(str.isalnum, text)) else ""


# --- the start of a line ------------------------------------------------------------------------------------------

_FENCE = re.compile(r"^(?P<before>(?:[^`~]|(?<!`)`(?!``)|~(?!~~))*?)\s*(?P<fence>`{3,}|~{3,})[^`~]*$")
_LINE_MARKUP = re.compile(
    r"""(?: \[[^\]]+\]:\s.*                                 # where a reference link leads
          | (?:>\s?)*                                       # quotation
            (?: \#{1,6}\s+ | [-*+•·◦▪]\s+(?:\[[ xX]\]\s+)? )?  # heading, bullet, task
        )""",
    re.VERBOSE,
)
_HEADING_END = re.compile(r"(?<=\s)#+$")
_LIST_NUMBER = re.compile(r"(\d{1,3})[.)]\s+")


def _without_line_markup(line: str) -> str:
    line = _LINE_MARKUP.sub("", _HEADING_END.sub("", line.strip()), count=1)
    return _LIST_NUMBER.sub(r"\1, ", line, count=1) if _LIST_NUMBER.match(line) else line  # "1." is no sentence


# --- within a line ------------------------------------------------------------------------------------------------


def _said_address(match: re.Match[str]) -> str:
    """The host only: "example dot com" for https://www.example.com/a?b."""
    return match["host"].removeprefix("www.").replace(".", " dot ").replace("-", " dash ")


def _said_email(match: re.Match[str]) -> str:
    return match[0].replace("@", " at ").replace(".", " dot ").replace("_", " ")


_EMOJI = (
    "\U0001f000-\U0001faff"  # pictographs, flags, skin tones
    "\u2600-\u27bf\u2300-\u23ff\u25a0-\u25ff\u2b00-\u2bff"  # symbols, dingbats, technical and geometric, stars
    "\u200d\u20e3\ufe0e\ufe0f\U000e0020-\U000e007f"  # joiners, keycaps, variation selectors, tags
)

_Rule: TypeAlias = "tuple[str, str | Callable[[re.Match[str]], str]]"

_RULES: tuple[_Rule, ...] = (
    # what is not text
    (r"<(\S+@\S+|\w+://\S+)>", r"\1"),
    (r"<!--.*?-->|</?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>", " "),
    (r"&#?\w+;", lambda match: html.unescape(match[0])),
    (r"[\x00-\x08\x0e-\x1f\x7f\u00ad\u200b\u2060\ufeff]", ""),
    # links, notes, addresses
    (r"!?\[([^\[\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+[\"'][^\"']*[\"'])?\)", r"\1"),
    (r"\[\^[^\]]+\]|(?<=[\w.,;:!?)\"”])\s?\[\d{1,3}\]", ""),
    (r"(?:https?://|\bwww\.)(?P<host>[\w.-]*\w)(?::\d+)?(?:[/?#](?:[^\s<>()\[\]\"'`*]*[\w/=#&%+-])?)?", _said_address),
    (r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b", _said_email),
    # pictures
    (rf"[{_EMOJI}]+", " "),
    (r"(?:(?<=\s)|^)[:;=]['-]?[()DPpOo/|](?=[\s.,!?]|$)", " "),
    # emphasis, code, tables
    (r"\\([\\`*_{}\[\]()#+.!|$~<>-])", r"\1"),
    (r"(?<=\d)\s*\*\s*(?=\d)", " × "),
    (r"(?<=\w)_+(?=\w)", " "),
    (r"[*_`\[\]{}]|~~", ""),
    (r"\s*\|+\s*", ", "),
    # marks that are drawn rather than said
    (r"\s*(?:…|\.{2,})\s*(?=\w)", ", "),
    (r"\s*(?:…|\.{2,})", "."),
    (r"\s*[→⇒➔]\s*|\s+(?:->|=>)\s+", ", "),
    # what the rules above leave behind, and the rest of the punctuation that ended the clause before
    (r"\(\s*\)", ""),
    (r"\s+", " "),
    (r" (?=[,.;:!?](?:\s|$))", ""),
    (r",(?:\s*,)+", ","),
    (r"^(?:[\s,;:!?)\"”’»。！？，、；：」』）—–]|\.(?!\d)|-(?!\d))+", ""),
)
"""Patterns and what is said instead, applied in order."""

_COMPILED = [(re.compile(pattern), replacement) for pattern, replacement in _RULES]


def _without_inline_markup(line: str) -> str:
    for pattern, replacement in _COMPILED:
        line = pattern.sub(replacement, line)
    return line.strip()

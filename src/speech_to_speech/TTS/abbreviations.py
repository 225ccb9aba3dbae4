"""Words whose full stop does not end a sentence."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# English titles and Latin shorthand, and the German and French ones that also turn up in English answers. Words that
# are ordinary words too ("sun.", "sat.", "may.") are left out: a missed sentence end costs more than a cut too many.
ALWAYS_ABBREVIATED = _words(
    "mr mrs ms dr prof st mt gen col sgt capt lt rev gov sen rep vs cf al approx dept est ca nr bzw mme mlle"
)

_BEFORE_NUMBERS = _words("no nos fig figs vol p pp ch sec art eq jan feb mar apr jun jul aug sep sept oct nov dec")
"""Abbreviations only when a number follows: "No. 5", but "No. I do not." """

_MAY_END = _words("etc inc ltd corp co jr sr a.m p.m usw")
"""Abbreviations that also stand at the end of a sentence; a capital letter after them says that they do."""

_DOTTED = re.compile(r"(?:\w\.)+\w")
"""The letters of "e.g.", "U.N.", "z.B." before the last stop."""


def keeps_stop(word: str) -> bool:
    """Whether the stop after `word` never ends a sentence: a title, an initial, dotted letters."""
    folded = word.casefold()
    if folded in _MAY_END:
        return False
    initial = len(word) == 1 and word.isalpha() and word != "I"
    return folded in ALWAYS_ABBREVIATED or initial or _DOTTED.fullmatch(word) is not None


def needs_following(word: str) -> bool:
    """Whether only the next word's first character tells: ask `keeps_stop_before`."""
    folded = word.casefold()
    return folded in _BEFORE_NUMBERS or folded in _MAY_END


def keeps_stop_before(word: str, following: str) -> bool:
    """As `keeps_stop`, with the first character of the next word ("" at the text's end)."""
    folded = word.casefold()
    if folded in _BEFORE_NUMBERS:
        return following.isdigit()
    return folded in _MAY_END and following != "" and not following.isupper()

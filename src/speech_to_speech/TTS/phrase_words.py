"""Where an English sentence without commas can be cut so that both parts still sound like parts of a sentence."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPENERS = _words(
    "and but or nor so because although though unless until since while when where which that who whose if as than "
    "to in on at by for from with without about between through during into over under after before across"
)
"""Conjunctions, relative pronouns and prepositions."""

_VERBS = _words("is are was were has have had can could will would does do did should must may might")
"""What follows a subject long enough to be a phrase of its own: "the capital of France | is Paris"."""

_LEANS_ON_NEXT = _OPENERS | _words(
    "of a an the this these those my your his her its our their some any no every each very more most not is are was "
    "were be been am do does did has have had will would can could should may might must such just only also even "
    "up out off down going want need able i you he she it we they"
)
"""Words that belong to what follows: "because of", "the in-crowd", "is that", "want to"."""


def opens_phrase(word: str, before: str) -> bool:
    """Whether a cut between the words `before` and `word` falls between two phrases; a number opens one."""
    opens = word.casefold() in _OPENERS | _VERBS or word[:1].isdigit()
    return opens and before.isalpha() and before.casefold() not in _LEANS_ON_NEXT

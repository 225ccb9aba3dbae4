"""How the end of the user's turn is found, and how long the pause before the reply must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Eagerness: TypeAlias = Literal["low", "medium", "high", "auto"]

MAXIMUM_WAIT_MS: dict[str, int] = {"low": 8000, "medium": 4000, "auto": 4000, "high": 2000}
"""The longest silence before the reply, by eagerness: the caps the Realtime API documents."""

_CONFIDENT_WAIT_MS = {"low": 700, "medium": 350, "auto": 350, "high": 250}
"""Silence required when the turn detector is certain that the user has finished."""

_UNDECIDED_WAIT_MS = {"low": 1400, "medium": 700, "auto": 700, "high": 450}
"""Silence required at p = 0.5."""

_UNFINISHED_WAIT_MS = {"low": 4000, "medium": 1800, "auto": 1800, "high": 1000}
"""Silence required when the turn detector is certain that the user will go on."""

QUESTION_COMPLETE = 0.75
"""A transcript that is a question is complete with at least this probability, whatever the turn detector, which judges
by the sound alone, makes of an unusual voice."""

QUESTION_WORDS = 3
"""Words a question has at least: "What?" may go on."""

QUESTION_ENDS = ("?", "？")

NEGATIVE_THRESHOLD_MARGIN = 0.15
"""Within speech a frame counts as voiced down to this much below the threshold (Silero's own hysteresis)."""


@dataclass(frozen=True, slots=True)
class ServerVAD:
    """End of turn after a fixed silence. Times in ms; field names are the Realtime API's."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    create_response: bool = True
    interrupt_response: bool = True


@dataclass(frozen=True, slots=True)
class SemanticVAD:
    """End of turn when the turn detector and the silence together say so."""

    eagerness: Eagerness = "auto"
    create_response: bool = True
    interrupt_response: bool = True
    threshold: float = 0.5
    prefix_padding_ms: int = 300


TurnDetection: TypeAlias = ServerVAD | SemanticVAD


def with_words(p_complete: float | None, text: str) -> float | None:
    """The turn detector's answer together with what the words say; `text` is "" while they are not all there."""
    if p_complete is None or not text.endswith(QUESTION_ENDS) or len(text.split()) < QUESTION_WORDS:
        return p_complete
    return max(p_complete, QUESTION_COMPLETE)


def required_silence_ms(detection: TurnDetection, p_complete: float | None) -> float:
    """Silence in ms after the last voiced sample before the reply may be heard.

    `p_complete` is how probable the end is, by what is known of this pause; None while nothing is.
    """
    if isinstance(detection, ServerVAD):
        return float(detection.silence_duration_ms)
    cap = MAXIMUM_WAIT_MS[detection.eagerness]
    if p_complete is None:
        return float(cap)
    confident = _CONFIDENT_WAIT_MS[detection.eagerness]
    undecided = _UNDECIDED_WAIT_MS[detection.eagerness]
    unfinished = _UNFINISHED_WAIT_MS[detection.eagerness]
    if p_complete >= 0.5:
        wait = confident + (undecided - confident) * (1.0 - p_complete) / 0.5
    else:
        wait = undecided + (unfinished - undecided) * (0.5 - p_complete) / 0.5
    return min(wait, float(cap))

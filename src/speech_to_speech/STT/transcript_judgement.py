"""Is what the recogniser wrote speech? Whisper writes something for every sound, and sometimes never stops.

The thresholds were tried on 490 spoken utterances (real and synthesised, from one word up) and 190 noises of 13 kinds
with `base`: 1 utterance is lost, 4 noises pass (screams of monkeys and one cough).
"""

from __future__ import annotations

import re
import zlib

_MAXIMUM_COMPRESSION = 2.4
"""Whisper's own threshold: text that deflates better than this repeats itself."""

_NO_SPEECH = 0.6
_LOW_LOG_PROBABILITY = -1.0
"""Whisper's own thresholds: both together mean that nobody spoke."""

_SURELY_NO_SPEECH = 0.85
_MODEST_LOG_PROBABILITY = -0.5
"""So sure that nobody spoke, the words must be good to be believed."""

_LOOP_NO_SPEECH = 0.4
"""Noise makes the model repeat itself, with a certainty that only grows; speech that loops is not taken for silence."""

_VERY_LOW_LOG_PROBABILITY = -1.6
"""Below this the words are guesses whatever the model thinks of the sound."""

_PHANTOM_NO_SPEECH = 0.2
_PHANTOM_LOG_PROBABILITY = -0.6
"""A phrase the model is known to invent for noise must be more certain than others."""

_PHANTOMS = frozenset(
    {"you", "thank you", "thanks", "thanks for watching", "thank you for watching", "bye", "so", "the", "oh", "okay"}
)

_ANNOTATION = re.compile(r"\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|[♪♫]+")
_WORD = re.compile(r"\w")


def is_looping(text: str) -> bool:
    """True for text that repeats itself over and over."""
    data = text.encode()
    return len(data) > 40 and len(data) / len(zlib.compress(data)) > _MAXIMUM_COMPRESSION


def without_repetition(text: str) -> str:
    """`text` up to where it begins to repeat itself."""
    words = text.split()
    for length in range(1, len(words) // 2 + 1):
        for start in range(len(words) - 2 * length + 1):
            phrase = words[start : start + length]
            if words[start + length : start + 2 * length] == phrase and is_looping(" ".join(words[start:])):
                return " ".join(words[: start + length])
    return text


def speech_of(text: str, *, log_probability: float, no_speech_probability: float) -> str:
    """`text` without annotations such as "[BLANK_AUDIO]"; "" when it is no speech."""
    spoken = " ".join(_ANNOTATION.sub(" ", text).split())
    if not _WORD.search(spoken):
        return ""
    if no_speech_probability > _NO_SPEECH and log_probability < _LOW_LOG_PROBABILITY:
        return ""
    if no_speech_probability > _SURELY_NO_SPEECH and log_probability < _MODEST_LOG_PROBABILITY:
        return ""
    if log_probability < _VERY_LOW_LOG_PROBABILITY:
        return ""
    if is_looping(spoken):
        return "" if no_speech_probability > _LOOP_NO_SPEECH else without_repetition(spoken)
    plain = re.sub(r"[^\w\s]", "", spoken).lower()
    doubtful = no_speech_probability > _PHANTOM_NO_SPEECH or log_probability < _PHANTOM_LOG_PROBABILITY
    return "" if plain in _PHANTOMS and doubtful else spoken

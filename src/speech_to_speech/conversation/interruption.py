"""Is a sound made while the assistant speaks an interruption, or just a sound?"""

from __future__ import annotations

import re

CONFIRM_AFTER_MS = 900
"""Speech sustained this long is an interruption whatever it says. Backchannels of up to 480 ms were measured."""

DISMISS_AFTER_S = 5.0
"""A suspicion that nothing confirms (the client sends no more audio, the recogniser is busy) ends after this."""

ASK_WORDS_AFTER_MS = 320
"""Speech this long is transcribed, to see whether it says something."""

BACKCHANNELS = frozenset(
    {"mm", "mmm", "mhm", "mhmm", "hm", "hmm", "mmhm", "mmhmm", "uh", "uhhuh", "huh", "ah", "aha", "oh", "ooh", "um"}
    | {"er", "erm", "yeah", "yep", "yup", "ya", "yes", "ok", "okay", "right", "sure", "i", "see", "good", "great"}
    | {"nice", "cool", "wow", "really", "exactly"}
)
"""Words that acknowledge and do not take the turn."""

_LETTERS = re.compile(r"[^\W\d_]+|\d+")


def takes_the_turn(transcript: str) -> bool:
    """True if `transcript` says more than an acknowledgement ("mm-hmm", "yeah, right", "I see")."""
    words = _LETTERS.findall(transcript.lower().replace("-", " ").replace("'", ""))
    return any(not _is_acknowledgement(word) for word in words)


def _is_acknowledgement(word: str) -> bool:
    return word in BACKCHANNELS or set(word) <= set("hmu")

"""English text to the phonemes Kokoro was trained on.

eSpeak NG, GPL-3.0-or-later, finds the pronunciation: it knows names, numbers and words of no dictionary, which Kokoro's
own G2P (misaki) leaves to it too. The wheel of piper-tts carries it for every platform; of that package nothing else is
used here.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from typing import Literal, TypeAlias

from speech_to_speech.TTS.espeak_text import for_espeak

Accent: TypeAlias = Literal["en-us", "en-gb"]

_ESPEAK_VOICES: dict[Accent, str] = {"en-us": "en-us", "en-gb": "en-gb-x-rp"}
"""The eSpeak NG voices nearest to misaki's dictionaries; in its plain "en" the vowels of "ask" are northern."""


class EnglishPhonemes:
    """Safe to call from several threads."""

    def __init__(self) -> None:
        from piper.phonemize_espeak import EspeakPhonemizer

        self._espeak = EspeakPhonemizer()
        self._lock = threading.Lock()  # espeak's state is global

    def sentences(self, text: str, accent: Accent) -> list[str]:
        """The phonemes of each sentence, its punctuation among them; none for text without a letter or digit."""
        voice = _ESPEAK_VOICES[accent]
        text = for_espeak(text, voice)
        if not any(map(str.isalnum, text)):
            return []
        with self._lock:
            spoken = self._espeak.phonemize(voice, text)
        return [as_kokoro_writes("".join(phonemes), accent) for phonemes in spoken]


def as_kokoro_writes(ipa: str, accent: Accent) -> str:
    """eSpeak NG's IPA for `accent` in the alphabet of misaki, Kokoro's G2P, where a diphthong is one capital letter.

    After `EspeakFallback` of https://github.com/hexgrad/misaki/blob/main/misaki/espeak.py, which says more about the
    symbols in EN_PHONES.md.
    """
    phonemes = unicodedata.normalize("NFC", ipa)
    for pattern, replacement in _ANY_ACCENT + _OF_ACCENT[accent]:
        phonemes = pattern.sub(replacement, phonemes)
    return phonemes.strip()


def _compiled(*rules: tuple[str, str]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern), replacement) for pattern, replacement in rules]


_ANY_ACCENT = _compiled(
    (r"(?<=\S)(?=[ˈˌ]?hˈ?ʌndɹɪd)", " "),  # espeak writes "two hundred" as one word
    ("aɪ", "I"),
    ("aʊ", "W"),
    ("eɪ", "A"),
    ("ɔɪ", "Y"),
    ("dʒ", "ʤ"),
    ("tʃ", "ʧ"),
    ("ʲ(?=[oə])", "j"),
    ("ʲ", ""),
    ("ɚɹ?", "əɹ"),
    ("r", "ɹ"),
    ("[xç]", "k"),
    ("ɐ", "ə"),
    ("ɬ", "l"),
    (r"ə(?=l(?:[^\wˈˌ]|[bdfkmnpstvzðŋɡʃʒʤʧθ]|$))", "ᵊ"),  # a syllable that is only an l
    ("(.)\u0329", r"ᵊ\1"),
    ("\u0303", ""),
)
_OF_ACCENT: dict[Accent, list[tuple[re.Pattern[str], str]]] = {
    "en-us": _compiled(
        ("oʊ", "O"),
        ("ɜːɹ?", "ɜɹ"),
        ("ɪə", "iə"),
        ("ː", ""),
        ("e", "A"),
        ("o", "ɔ"),
        ("ɾ", "T"),
        ("ʔ", "t"),
    ),
    "en-gb": _compiled(
        ("æ", "a"),
        (r"ɪ(?=[^\wˈˌ]|$)", "i"),
        ("əʊ", "Q"),
        ("eə", "ɛː"),
        ("iə", "ɪə"),
        ("e", "A"),
        ("o", "ɔ"),
        ("ʔ", "t"),
    ),
}

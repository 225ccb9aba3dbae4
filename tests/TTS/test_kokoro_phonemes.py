"""English as Kokoro reads it; expected values are those of misaki's dictionaries, `us_gold.json` and `gb_gold.json`."""

from __future__ import annotations

import pytest

from speech_to_speech.TTS.kokoro_phonemes import EnglishPhonemes, as_kokoro_writes


@pytest.fixture(scope="module")
def phonemes() -> EnglishPhonemes:
    return EnglishPhonemes()


@pytest.mark.parametrize(
    ("word", "american", "british"),
    [
        ("boy", "bˈY", "bˈY"),
        ("church", "ʧˈɜɹʧ", "ʧˈɜːʧ"),
        ("judge", "ʤˈʌʤ", "ʤˈʌʤ"),
        ("water", "wˈɔTəɹ", "wˈɔːtə"),
        ("little", "lˈɪTᵊl", "lˈɪtᵊl"),
        ("hair", "hˈɛɹ", "hˈɛː"),
        ("house", "hˈWs", "hˈWs"),
        ("time", "tˈIm", "tˈIm"),
        ("day", "dˈA", "dˈA"),
        ("huge", "hjˈuʤ", "hjˈuːʤ"),
        ("after", "ˈæftəɹ", "ˈɑːftə"),
        ("city", "sˈɪTi", "sˈɪti"),
        ("happy", "hˈæpi", "hˈapi"),
        ("about", "əbˈWt", "əbˈWt"),
    ],
)
def test_words_are_written_as_misaki_writes_them(
    phonemes: EnglishPhonemes, word: str, american: str, british: str
) -> None:
    assert phonemes.sentences(word, "en-us") == [american]
    assert phonemes.sentences(word, "en-gb") == [british]


def test_numbers_and_abbreviations_become_words(phonemes: EnglishPhonemes) -> None:
    written = phonemes.sentences("Dr. Smith paid $5 on May 3rd.", "en-us")
    assert written == phonemes.sentences("Doctor Smith paid five dollars on May third.", "en-us")
    assert phonemes.sentences("200", "en-us") == ["tˈu hˈʌndɹɪd"]


def test_sentences_are_apart_and_keep_their_punctuation(phonemes: EnglishPhonemes) -> None:
    first, second, third = phonemes.sentences("Well, no! Is it? It is; yes.", "en-us")
    assert (first[3], first[-1], second[-1], third[-1]) == ("l", "!", "?", ".")
    assert ", " in first and "; " in third


@pytest.mark.parametrize("text", ["", " ", "...", "*", "😀", "你好", "\x00"])
def test_text_without_words_has_no_phonemes(phonemes: EnglishPhonemes, text: str) -> None:
    assert phonemes.sentences(text, "en-us") == []


def test_an_r_between_vowels_is_not_doubled() -> None:
    assert as_kokoro_writes("flˈæɾɚɹɪŋ", "en-us") == "flˈæTəɹɪŋ"


def test_a_syllabic_consonant_gets_its_vowel() -> None:
    assert as_kokoro_writes("ˈɪʔn\u0329", "en-us") == "ˈɪtᵊn"

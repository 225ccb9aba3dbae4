from __future__ import annotations

import pytest

from speech_to_speech.TTS.espeak_text import for_espeak


@pytest.mark.parametrize(
    ("written", "respelled"),
    [
        ("Dr. Smith met J. Doe.", "Dr Smith met J Doe."),
        ("The U.S. Army.", "The U S Army."),
        ("$5.50, $1, $1,000.00 and €20.05", "5 dollars 50, 1 dollar, 1,000 dollars and 20 euros 5"),
        ("$1.5 million", "1.5 million dollars"),
        ("$0.50 or €0.05", "50 cents or 5 cents"),
        ("1 kg, 5km, 30 mph, 6 ft", "1 kilogram, 5 kilometers, 30 miles per hour, 6 feet"),
        ("the 1990s, in 1984", "the 19 nineties, in 19 84"),
        ("2024-05-01, 1,984, 1900, 555-0100", "2024-05-01, 1,984, 1900, 555-0100"),
        ("pages 10–20, 3-2", "pages 10 to 20, 3 to 2"),
        ("~5, #1, C#, and/or, he/she", "about 5, number 1, C sharp, and or, he or she"),
        ("x < 5", "x is less than 5"),
        ("Say 你好 now", "Say   now"),
        ("[[hello]]", "hello"),
        ("a\x00b", "ab"),
        ("It is 5, not 3.14.", "It is 5, not 3.14."),
    ],
)
def test_english_is_respelled(written: str, respelled: str) -> None:
    assert for_espeak(written, "en-us") == respelled


def test_other_languages_keep_their_numbers() -> None:
    assert for_espeak("5 km für $3 in 1984", "de") == "5 km für $3 in 1984"
    assert for_espeak("你好", "cmn") == "你好"

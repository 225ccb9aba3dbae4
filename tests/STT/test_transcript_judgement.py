"""What is speech, what is noise, what is a loop."""

from __future__ import annotations

import pytest

from speech_to_speech.STT.transcript_judgement import is_looping, speech_of, without_repetition

LOOP = "What is the capital of France? " * 6


def _judged(text: str, log_probability: float = -0.2, no_speech: float = 0.01) -> str:
    return speech_of(text, log_probability=log_probability, no_speech_probability=no_speech)


def test_speech_is_kept_as_it_is() -> None:
    assert _judged(" What is the capital of France?") == "What is the capital of France?"


@pytest.mark.parametrize("text", ["", " .", "...", "[BLANK_AUDIO]", "(music)", "♪♪", "*coughs*", "[Music] ♪"])
def test_annotations_and_marks_are_no_speech(text: str) -> None:
    assert _judged(text) == ""


def test_annotations_between_words_are_left_out() -> None:
    assert _judged("(coughs) Hello [noise] there") == "Hello there"


def test_what_whisper_itself_takes_for_silence_is_silence() -> None:
    assert _judged("Hello there", log_probability=-1.1, no_speech=0.7) == ""
    assert _judged("Hello there", log_probability=-0.9, no_speech=0.7) == "Hello there"


def test_a_phrase_that_noise_brings_must_be_certain() -> None:
    assert _judged("Thank you.", no_speech=0.5) == ""
    assert _judged("Thank you.", no_speech=0.02) == "Thank you."


def test_loops_are_seen_and_cut_once() -> None:
    assert is_looping(LOOP)
    assert not is_looping("Unless to be rather cold-hearted and rather selfish is to be ill-disposed.")
    assert not is_looping("No, no, no.")
    assert without_repetition(LOOP) == "What is the capital of France?"
    assert without_repetition("Please tell me. " + LOOP) == "Please tell me. What is the capital of France?"
    assert without_repetition("one two three") == "one two three"


def test_a_loop_over_noise_is_noise_and_over_speech_is_speech() -> None:
    assert _judged(LOOP, no_speech=0.7) == ""
    assert _judged(LOOP, no_speech=0.1) == "What is the capital of France?"

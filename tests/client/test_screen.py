from __future__ import annotations

import io

from speech_to_speech.client.screen import Screen


def shown(*calls: tuple[str, ...]) -> str:
    output = io.StringIO()
    screen = Screen(output)
    for name, *arguments in calls:
        getattr(screen, name)(*arguments)
    return output.getvalue()


def test_words_continue_their_line_and_completion_ends_it() -> None:
    assert shown(
        ("words", "you", "u", " What is"),
        ("words", "you", "u", " it?"),
        ("utterance", "you", "u", " What is it? "),
    ) == ("you: What is it?\n")


def test_completion_adds_what_was_missing() -> None:
    assert shown(("words", "you", "u", "What"), ("utterance", "you", "u", "What is it?")) == "you: What is it?\n"


def test_an_utterance_that_came_out_differently_is_written_again() -> None:
    assert shown(("words", "you", "u", "Wet is"), ("utterance", "you", "u", "What is it?")) == (
        "you: Wet is\nyou: What is it?\n"
    )


def test_two_speakers_at_once_get_lines_of_their_own() -> None:
    assert shown(
        ("words", "you", "u", "What"),
        ("words", "assistant", "a", "Par"),
        ("words", "assistant", "a", "is."),
        ("utterance", "you", "u", "What?"),
        ("utterance", "assistant", "a", "Paris."),
    ) == ("you: What\nassistant: Paris.\nyou: What?\n")


def test_an_utterance_without_words_is_not_shown() -> None:
    assert shown(("utterance", "you", "u", "")) == ""


def test_a_remark_begins_a_line() -> None:
    assert shown(("words", "you", "u", "What"), ("remark", "(a cough)")) == "you: What\n(a cough)\n"

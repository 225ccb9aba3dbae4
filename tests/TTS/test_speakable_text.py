from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_to_speech.TTS.speakable_text import CODE_BLOCK_PHRASE, SpeakableText


def said(text: str) -> str:
    return SpeakableText().feed(text)


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Plain text, as it is.", "Plain text, as it is."),
        ("## The plan ##", "The plan"),
        ("This is **very** _important_, ~~not~~ *really*.", "This is very important, not really."),
        ("Call `print(x)` now.", "Call print(x) now."),
        ("The name is snake_case here.", "The name is snake case here."),
        ("- an apple", "an apple"),
        ("* [x] done", "done"),
        ("3. Stir.", "3, Stir."),
        ("> quoted", "quoted"),
        ("---", ""),
        ("Read [the docs](https://docs.example.com/a_(b)) first.", "Read the docs first."),
        ('![a cat](cat.png "Tom") sleeps', "a cat sleeps"),
        ("[1]: https://example.com", ""),
        ("It is so.[2] Really [3].", "It is so. Really."),
        ("Go to https://www.example.com/path?q=1.", "Go to example dot com."),
        ("See <https://my-site.org/>!", "See my dash site dot org!"),
        ("Write to jo.do@example.com.", "Write to jo dot do at example dot com."),
        ("Hello 👋🏽 there 👨‍👩‍👧!", "Hello there!"),
        ("Nice :-) thanks ;)", "Nice thanks"),
        ("1️⃣ one", "1 one"),
        ("some <b>bold</b> <br/>text &amp; more", "some bold text & more"),
        ("| France | Paris |", "France, Paris,"),
        ("|---|:--:|", ""),
        ("2 * 3 is 6", "2 × 3 is 6"),
        ("Well... I see…", "Well, I see."),
        ("A → B", "A, B"),
        ("-5 degrees, $3.50, 20 °C, 50%", "-5 degrees, $3.50, 20 °C, 50%"),
        (".5 is a half", ".5 is a half"),
        ("don’t “quote” me", "don’t “quote” me"),
        ("[[hello]]", "hello"),
        ("你好，世界。", "你好，世界。"),
        ("", ""),
        (" \n\n", ""),
        ("...", ""),
        ("!!", ""),
        ("**", ""),
        ("😀", ""),
    ],
)
def test_what_is_written_becomes_what_is_said(written: str, spoken: str) -> None:
    assert said(written) == spoken


def test_the_rest_of_the_marks_that_ended_the_clause_before_is_dropped() -> None:
    speakable = SpeakableText()
    assert speakable.feed("**Great!") == "Great!"
    assert speakable.feed('!"** Then we go.') == "Then we go."


def test_a_dash_is_a_bullet_only_where_a_line_begins() -> None:
    speakable = SpeakableText()
    assert speakable.feed("It is cold,") == "It is cold,"
    assert speakable.feed(" -5 to be exact.") == "-5 to be exact."


def test_a_code_block_over_many_clauses_is_mentioned_once() -> None:
    clauses = [
        "Here it is:",
        "\n",
        "```python\n",
        "print(1, 2)\n",
        "x = 'Hello there. You.'\n",
        "```\n",
        "That is all.",
    ]
    speakable = SpeakableText()
    assert [speakable.feed(clause) for clause in clauses] == [
        "Here it is:", "", CODE_BLOCK_PHRASE, "", "", "", "That is all.",
    ]  # fmt: skip


def test_a_code_block_that_begins_in_the_middle_of_a_line_is_one_too() -> None:
    assert said("Like this: ```js\nfoo();\n```\nSee?") == f"Like this: {CODE_BLOCK_PHRASE} See?"


def test_a_fence_inside_a_longer_fence_does_not_close_it() -> None:
    assert said("````\n```\ncode\n```\n````\nafter") == f"{CODE_BLOCK_PHRASE} after"


def test_code_between_fences_on_one_line_is_said() -> None:
    assert said("Type ```ls``` there.\nGood.") == "Type ls there. Good."


@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_one_line_with_something_to_say_or_nothing(text: str) -> None:
    spoken = said(text)
    assert spoken == "" or any(map(str.isalnum, spoken))
    assert not set(spoken) & set("\n\x00`*[]")


@pytest.mark.parametrize(
    "part", [" ", "-", "|", "[", "<a ", "`", "~", "www.a-", "a@", "*", "#", ".", "http://", "[a](", "> "]
)
def test_repeated_marks_take_no_time(part: str) -> None:
    said(part * 400 + "x")
    said("\n" + part * 400)

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_to_speech.TTS.clause_chunker import Clause, ClauseChunker, ClauseChunking

BY_TEXT_ALONE = ClauseChunking(eager_first=False)

PARTS = [
    "the answer", " is", " and", " because", "Paris", " a", "Dr", "U.S.", "3", "14", ".", ",", ":", ";", "!", "?",
    "...", "…", "—", " - ", "–", " ", "\n", "\r\n", "`", "```", "[", "](", ")", "<b>", "&amp;", "**", '"', "'", "https://a.b/c",
    "me@x.org", "你好", "。", "，", "！", "😀", "\u200d", "No", "etc", "1", "0" * 50, "word " * 20, "x" * 200,
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=5)), max_size=40).map("".join)


def clauses(deltas: list[str], chunking: ClauseChunking | None = None) -> list[Clause]:
    chunker = ClauseChunker(chunking)
    return [clause for delta in deltas for clause in chunker.feed(delta)] + chunker.finish()


def cut(text: str, chunking: ClauseChunking | None = None) -> list[str]:
    """The clauses of `text` written character by character, without the spaces around them."""
    return [clause.text.strip() for clause in clauses(list(text), chunking or BY_TEXT_ALONE)]


def deltas(text: str, ends: list[int]) -> list[str]:
    points = [0, *sorted(end % (len(text) + 1) for end in ends), len(text)]
    return [text[start:end] for start, end in pairwise(points)]


# --- what holds for any text ----------------------------------------------------------------------------------------


@given(text=texts, ends=st.lists(st.integers(0, 10_000), max_size=20), eager=st.booleans())
@settings(max_examples=300, deadline=None)
def test_the_clauses_partition_the_text_however_it_is_cut(text: str, ends: list[int], eager: bool) -> None:
    made = clauses(deltas(text, ends), ClauseChunking(eager_first=eager))
    assert "".join(clause.text for clause in made) == text
    assert [clause.start for clause in made] == [0, *(clause.end for clause in made)][: len(made)]
    assert all(clause.text == text[clause.start : clause.end] != "" for clause in made)


@given(text=texts, ends=st.lists(st.integers(0, 10_000), max_size=20))
@settings(max_examples=300, deadline=None)
def test_the_cuts_do_not_depend_on_the_deltas(text: str, ends: list[int]) -> None:
    assert clauses(deltas(text, ends), BY_TEXT_ALONE) == clauses([text], BY_TEXT_ALONE)


@given(text=texts)
@settings(max_examples=100, deadline=None)
def test_no_clause_is_longer_than_the_longest_allowed(text: str) -> None:
    assert all(len(clause.text) <= 400 for clause in clauses([text]))


# --- the first clause is early --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "clause"),
    [
        (["Sure", "!"], "Sure!"),
        (["In", " Paris", ","], "In Paris,"),
        (["你好", "，"], "你好，"),
        (["Certainly", ";"], "Certainly;"),
        (["Good", " question", " —"], "Good question —"),
        (["Two", " things", ":", "\n"], "Two things:"),
        (["A", " poem", "\n"], "A poem\n"),
        (["The", " capital", " of", " France", " is"], "The capital of France"),
        (["She", " is", " my", " sister", "."], "She is my sister."),
        (["That", " is", " roughly", " ", "3"], "That is roughly"),
    ],
)
def test_the_first_clause_is_there_with_its_last_token(written: list[str], clause: str) -> None:
    chunker = ClauseChunker()
    assert not [made for delta in written[:-1] for made in chunker.feed(delta)]
    assert [made.text for made in chunker.feed(written[-1])] == [clause]


def test_one_word_and_a_comma_are_a_first_clause_that_buys_time() -> None:
    assert cut("Yes, it is in Paris.") == ["Yes,", "it is in Paris."]


def test_a_first_sentence_without_commas_is_cut_between_phrases() -> None:
    assert cut("Photosynthesis is the process by which green plants and some algae make sugar from light.") == [
        "Photosynthesis is the process",
        "by which green plants and some algae make sugar from light.",
    ]


def test_a_long_subject_is_a_phrase_a_short_one_is_not() -> None:
    assert cut("The population of the town is about two thousand.") == [
        "The population of the town",
        "is about two thousand.",
    ]
    assert cut("Reykjavíkurborg is beautiful.") == ["Reykjavíkurborg is beautiful."]


def test_a_phrase_is_not_torn_from_the_word_that_leads_to_it() -> None:
    assert cut("The match in our town was moved to this Saturday because of the rain and the wind.") == [
        "The match in our town",
        "was moved to this Saturday because of the rain and the wind.",
    ]


def test_a_stop_after_a_number_waits_for_the_next_character() -> None:
    chunker = ClauseChunker()
    assert chunker.feed("Pi is about 3.") == []
    assert chunker.feed("14, roughly") == [Clause("Pi is about 3.14,", 0, 17, "comma")]


# --- later clauses grow ---------------------------------------------------------------------------------------------


def test_clauses_grow_with_the_audio_made_so_far() -> None:
    made = cut(
        "Of course, the moon, our neighbour, is cold, grey, dry, and very, very, very quiet, at least by day, I think."
    )
    assert made[0] == "Of course,"
    assert [len(clause) for clause in made[:-1]] == sorted(len(clause) for clause in made[:-1])


def test_later_sentences_are_not_cut_at_their_first_comma() -> None:
    assert cut("The weather is fine today. In the north, it may rain. That is all.") == [
        "The weather is fine today.",
        "In the north, it may rain.",
        "That is all.",
    ]


def test_a_later_comma_cuts_beyond_a_breath() -> None:
    long = "the committee that was formed last year has met again in the old town hall to discuss the plan"
    assert cut(f"The weather is fine here today in town. At last, {long}, they say.")[-2:] == [
        f"At last, {long},",
        "they say.",
    ]


# --- where never to cut ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "It is exactly 3.14 or 1,000 or 10:30 here",
        "My friend Mr. Brown met Dr. Who at St. Pancras",
        "Bring some fruit e.g. apples i.e. red",
        "He lives in the U.S. Army barracks",
        "The writer J. R. R. Tolkien wrote it",
        "Look at https://example.com/a,b;c?d=e!f:g now",
        "Write to first.last@mail.example.com",
        "The file is called notes.txt or main.py there",
        "I have read No. 5 and Fig. 3 already",
        "We meet at 9 a.m. every day",
        "Use `print(a, b); exit!` please",
        "Read [this, and that. Here](https://a.b) now",
        "R&amp;D is where a != b holds",
        "Version 2.0.1 of it",
    ],
)
def test_a_mark_inside_a_word_does_not_cut(text: str) -> None:
    assert cut(text) == [text]


def test_an_ellipsis_is_one_mark() -> None:
    assert cut("Well now... let me see.") == ["Well now...", "let me see."]


def test_no_is_a_sentence_unless_a_number_follows() -> None:
    assert cut("No. I would not.") == ["No.", "I would not."]


def test_an_abbreviation_ends_the_sentence_before_a_capital() -> None:
    assert cut("Come at 9 a.m. Bring tea.") == ["Come at 9 a.m.", "Bring tea."]


def test_list_numbers_stay_with_their_item() -> None:
    assert cut("1. Boil water.\n2. Add tea.\n") == ["1. Boil water.", "2. Add tea.", ""]


def test_quotes_and_brackets_stay_with_the_sentence_they_close() -> None:
    assert cut('He said "it is late." Then he left (at last.) Good.') == [
        'He said "it is late."',
        "Then he left (at last.)",
        "Good.",
    ]


def test_chinese_marks_need_no_space() -> None:
    assert cut("今天天气很好！我们去公园吧。好吗？") == ["今天天气很好！", "我们去公园吧。", "好吗？"]


def test_marks_alone_are_no_clause() -> None:
    assert cut("Wow!!! Great.") == ["Wow!", "!! Great."]
    assert cut("...") == ["..."]


def test_a_smiley_is_no_colon() -> None:
    assert cut("You are very welcome :) my friend") == ["You are very welcome :) my friend"]


def test_a_backtick_that_is_never_closed_does_not_hold_the_text_back() -> None:
    assert len(cut("The ` key is odd. " + "It goes on and on. " * 10)) > 5


def test_text_without_any_mark_is_cut_at_a_space() -> None:
    made = cut("blah " * 200)
    assert max(map(len, made)) <= 400
    assert {clause[-4:] for clause in made if clause} == {"blah"}

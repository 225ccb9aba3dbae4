from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_to_speech.arguments_classes.tts_arguments import TTSArguments
from speech_to_speech.errors import Cancelled
from speech_to_speech.stage_types import IsCancelled, Samples, SpeechPiece, TextToSpeechCapabilities
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.TTS.speech_feed import SpeechFeed

RATE = 1_000


class Beeper(TextToSpeech):
    """Says each word as 100 ms of tone, a chunk each, with 60 ms of silence before the first and 300 after the last."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    @classmethod
    def load(cls, arguments: TTSArguments, threads: int) -> Beeper:
        return cls()

    @property
    def capabilities(self) -> TextToSpeechCapabilities:
        return TextToSpeechCapabilities(streams_text=False, sample_rate=RATE, voices=("beep",))

    def synthesize(self, text: str, *, voice: str, speed: float, is_cancelled: IsCancelled) -> Iterator[Samples]:
        self.heard.append(text)
        yield np.zeros(60, np.float32)
        for _ in text.split():
            if is_cancelled():
                raise Cancelled
            yield np.full(100, 0.5, np.float32)
        yield np.zeros(300, np.float32)


def speak(feed: SpeechFeed) -> list[SpeechPiece]:
    pieces = []
    while (clause := feed.next_clause()) is not None:
        pieces += feed.speak(clause, lambda: False)
    return pieces


def spans(pieces: list[SpeechPiece]) -> list[tuple[int, int]]:
    return [(piece.text_start, piece.text_end) for piece in pieces if piece.clause_end]


def test_a_clause_is_queued_while_its_reply_is_still_being_written() -> None:
    feed = SpeechFeed(Beeper())
    assert feed.add("Of course", False) == []
    assert [clause.text for clause in feed.add(", I", False)] == ["Of course,"]
    assert not feed.done


def test_pieces_of_a_clause_carry_its_span_and_the_last_one_its_end() -> None:
    feed = SpeechFeed(Beeper())
    feed.add("Two words. Now three words.", True)
    pieces = speak(feed)
    assert [piece.clause_end for piece in pieces] == [False, False, True, False, False, False, True]
    assert {(piece.text_start, piece.text_end) for piece in pieces[:3]} == {(0, 10)}
    assert {(piece.text_start, piece.text_end) for piece in pieces[3:]} == {(10, 27)}
    assert {piece.sample_rate for piece in pieces} == {RATE}


def test_silence_is_trimmed_to_the_pause_that_fits_the_boundary() -> None:
    feed = SpeechFeed(Beeper())
    feed.add("In Paris, it rains. Yes.", True)
    durations = [0, 0, 0]
    for piece in speak(feed):
        durations[[9, 19, 24].index(piece.text_end)] += len(piece.samples)
    assert durations == [20 + 200 + 130, 20 + 200 + 200, 20 + 100 + 200]


def test_characters_with_nothing_to_say_belong_to_the_clause_after_them() -> None:
    text = "Look here:\n```python\nx = [1, 2]\nprint(x)\n```\nDone."
    feed = SpeechFeed(Beeper())
    feed.add(text, True)
    assert spans(speak(feed)) == [(0, 10), (10, 21), (21, len(text))]


def test_an_emoji_at_the_end_of_the_reply_is_a_piece_without_sound() -> None:
    voice = Beeper()
    feed = SpeechFeed(voice)
    feed.add("Well done! 🎉", True)
    last = speak(feed)[-1]
    assert (last.text_start, last.text_end, len(last.samples), last.clause_end) == (10, 12, 0, True)
    assert voice.heard == ["Well done!"]


@pytest.mark.parametrize("text", ["", "🎉", "...", "\n\n"])
def test_a_reply_with_nothing_to_say_asks_nothing_of_the_voice(text: str) -> None:
    voice = Beeper()
    feed = SpeechFeed(voice)
    feed.add(text, True)
    assert sum(len(piece.samples) for piece in speak(feed)) == 0
    assert voice.heard == []
    assert feed.done


def test_it_is_done_when_the_last_clause_was_spoken() -> None:
    feed = SpeechFeed(Beeper())
    feed.add("First one. Second", False)
    speak(feed)
    assert not feed.done
    feed.add(" one.", False)
    feed.add("", True)
    assert not feed.done
    speak(feed)
    assert feed.done


def test_a_clause_is_closed_by_a_mark_the_voice_can_take_its_intonation_from() -> None:
    voice = Beeper()
    feed = SpeechFeed(voice)
    feed.add(
        "# Title\nPhotosynthesis is the process by which green plants and algae make sugar\n- item;\n**“Bye!”**", True
    )
    speak(feed)
    assert voice.heard == [
        "Title.",
        "Photosynthesis is the process,",
        "by which green plants and algae make sugar.",
        "item.",
        "“Bye!",
    ]


def test_cancelling_ends_a_clause_between_two_pieces() -> None:
    cancelled = False
    feed = SpeechFeed(Beeper())
    (clause,) = feed.add("One two three.", True)
    pieces = feed.speak(clause, lambda: cancelled)
    next(pieces)
    cancelled = True
    with pytest.raises(Cancelled):
        next(pieces)
    assert not feed.done


WRITTEN = st.sampled_from(
    [
        "Hello",
        " there",
        ".",
        "!",
        ", ",
        "\n",
        "```",
        "`x`",
        " 🎉",
        "**",
        "# ",
        "- ",
        "...",
        " and so on",
        "3.14",
        "<b>",
        "| a |",
    ]
)


@given(st.lists(WRITTEN, max_size=40))
@settings(max_examples=150, deadline=None)
def test_the_spans_cover_every_character_once(written: list[str]) -> None:
    feed = SpeechFeed(Beeper())
    pieces = []
    for delta in written:
        feed.add(delta, False)
        pieces += speak(feed)
    feed.add("", True)
    pieces += speak(feed)
    covered = spans(pieces)
    assert [start for start, _ in covered] == [0, *(end for _, end in covered)][: len(covered)]
    assert (covered[-1][1] if covered else 0) == len("".join(written))
    assert feed.done

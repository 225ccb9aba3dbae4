from __future__ import annotations

from client.scripted_realtime_server import (
    failed_response,
    response_created,
    response_done,
    speech_started,
    turn_ended,
    words,
)
from speech_to_speech.client.turn_progress import TurnProgress


def after(*events: dict[str, object]) -> TurnProgress:
    progress = TurnProgress()
    for event in events:
        progress.receive(event)
    return progress


ANSWERED = (
    speech_started("u"),
    *turn_ended("u", "Hello"),
    response_created("r"),
    words("r", "a", "Hi"),
    response_done("r"),
)


def test_nothing_is_settled_before_the_first_turn() -> None:
    assert not after().is_settled


def test_a_complete_answer_settles() -> None:
    progress = after(*ANSWERED)
    assert (progress.is_settled, progress.answered) == (True, True)


def test_a_turn_in_between_two_answers_is_not_settled() -> None:
    assert not after(*ANSWERED, speech_started("v")).is_settled
    assert not after(*ANSWERED, speech_started("v"), *turn_ended("v", "And?")).is_settled
    assert not after(*ANSWERED, response_created("s")).is_settled


def test_a_failed_response_settles_unanswered_even_after_its_first_words() -> None:
    progress = after(response_created("r"), words("r", "a", "Hi"), *failed_response("r", "broken"))
    assert (progress.is_settled, progress.answered, progress.error) == (True, False, "broken")


def test_a_failure_without_details_has_words_all_the_same() -> None:
    assert after(response_created("r"), response_done("r", "failed")).error == "the response failed"


def test_a_transcript_that_comes_after_the_answer_changes_nothing() -> None:
    late = turn_ended("u", "Hello")[-1]
    assert after(*ANSWERED, late).is_settled

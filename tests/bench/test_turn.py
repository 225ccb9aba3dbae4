"""The arithmetic of the turn benchmark; the turns themselves are its own business."""

from __future__ import annotations

import numpy as np
import pytest

from speech_to_speech.bench.questions import Question
from speech_to_speech.bench.recorded_turn import RecordedTurn
from speech_to_speech.bench.turn import asked_together, percentiles, summary, table
from speech_to_speech.cli import main


def question(name: str) -> Question:
    return Question(name, "voice", np.zeros(10, np.float32), 2.0, 1.0)


def turn(wait_ms: float | None, length: str = "short", **timeline: float) -> RecordedTurn:
    return RecordedTurn("q", "voice", length, 2.0, wait_ms, "what?", "that.", timeline)


@pytest.mark.parametrize(("count", "sessions"), [(14, 1), (14, 2), (14, 3), (3, 5), (1, 1)])
def test_each_question_is_asked_once(count: int, sessions: int) -> None:
    questions = [question(str(number)) for number in range(count)]
    groups = asked_together(questions, sessions)

    assert sorted(q.name for group in groups for q in group) == sorted(q.name for q in questions)
    assert max(map(len, groups)) == min(sessions, count)


def test_far_neighbours_are_asked_together() -> None:
    questions = [question(str(number)) for number in range(6)]
    assert [[q.name for q in group] for group in asked_together(questions, 2)] == [["0", "3"], ["1", "4"], ["2", "5"]]


def test_percentiles_of_nothing_are_nothing() -> None:
    assert percentiles([]) == {"n": 0}
    assert percentiles([100.0, 200.0, 300.0]) == {"n": 3, "median": 200.0, "p95": 290.0, "min": 100.0, "max": 300.0}


def test_answers_before_the_end_and_missing_ones_are_counted_apart() -> None:
    turns = [turn(500.0, first_token_ms=100.0), turn(700.0), turn(-50.0), turn(None), turn(900.0, "long")]
    short, long = summary(turns)["short"], summary(turns)["long"]

    assert short["voice_to_voice_ms"]["n"] == 2 and short["voice_to_voice_ms"]["median"] == 600.0
    assert (short["answered_before_the_end"], short["unanswered"]) == (1, 1)
    assert short["steps_ms"]["first_token_ms"]["median"] == 100.0
    assert long["voice_to_voice_ms"]["median"] == 900.0


def test_the_table_ends_with_the_ratio() -> None:
    shown = table({"ours": [turn(500.0)], "fixed hold": [turn(1000.0)]})
    assert shown.splitlines()[-1] == "short questions, median: ours / fixed hold = 0.50"


def test_no_sessions_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "turn", "--sessions", "0"]) == 1
    assert "--repeat and --sessions: expected at least 1" in capsys.readouterr().err

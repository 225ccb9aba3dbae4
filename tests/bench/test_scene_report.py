"""Rows of many verdicts, and the file in which they gather."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.test_scene_player import scene, step
from speech_to_speech.bench.scene_judge import Verdict
from speech_to_speech.bench.scene_report import rows, table
from speech_to_speech.bench.scene_results import Result, ResultLog
from speech_to_speech.errors import ConfigurationError

NOTHING = Verdict(
    cut_off=None,
    voice_to_voice_ms=None,
    answered=None,
    late=None,
    unwanted_reply=None,
    stopped=None,
    last_byte_ms=None,
    silence_ms=None,
    history=None,
    heard=None,
    history_words_off=None,
    underruns=0,
    underrun_ms=0.0,
    holds=0,
    turns=1,
    transcript="",
    answer="",
)


def result(kind: str, verdict: Verdict, *, real: bool = False, policy: str = "ours") -> Result:
    return Result(f"{kind}_x", kind, "train", real, policy, 1, verdict)


RESULTS = [
    result("pause", replace(NOTHING, cut_off=True)),
    result("pause", replace(NOTHING, cut_off=False, voice_to_voice_ms=700.0, answered=True, late=False)),
    result("pause", replace(NOTHING, cut_off=False, voice_to_voice_ms=2100.0, answered=True, late=True)),
    result("pause", replace(NOTHING, cut_off=False, answered=False, late=True), real=True),
    result("interruption", replace(NOTHING, stopped=True, last_byte_ms=200.0, silence_ms=400.0, history_words_off=1)),
    result("interruption", replace(NOTHING, stopped=False)),
    result("cough", replace(NOTHING, stopped=True, underruns=2, underrun_ms=90.0)),
]


def test_real_and_synthetic_voices_are_counted_apart() -> None:
    found = {(row.kind, row.source): row for row in rows(RESULTS)}
    pause = found["pause", "synthetic"]
    assert (pause.n, pause.cut_off.count, pause.cut_off.n) == (3, 1, 3)
    assert (pause.late.count, pause.late.n, pause.unanswered.count) == (1, 2, 0)
    assert pause.voice_to_voice_ms is not None
    assert (pause.voice_to_voice_ms.n, pause.voice_to_voice_ms.median) == (2, 1400)
    real = found["pause", "real"]
    assert (real.unanswered.count, real.unanswered.n, real.voice_to_voice_ms) == (1, 1, None)
    assert (found["all", "synthetic"].n, found["all", "real"].n) == (6, 1)


def test_stops_that_should_be_and_stops_that_should_not_are_counted_apart() -> None:
    found = {(row.kind, row.source): row for row in rows(RESULTS)}
    interruption, cough = found["interruption", "synthetic"], found["cough", "synthetic"]
    assert (interruption.missed_stops.count, interruption.missed_stops.n, interruption.false_stops.n) == (1, 2, 0)
    assert interruption.silence_ms is not None and interruption.silence_ms.median == 400
    assert (cough.false_stops.count, cough.missed_stops.n, cough.underruns.count) == (1, 0, 1)


def test_the_table_has_a_line_per_row_and_says_what_it_does_not_know() -> None:
    lines = table(rows(RESULTS)).splitlines()
    pause = next(line for line in lines if line.startswith("pause        synthetic"))
    assert "1400 [700-2100]" in pause and "1/3 [6%-79%]" in pause
    real = next(line for line in lines if line.startswith("pause        real"))
    assert real.split()[3:5] == ["1", "-"]


MODELS = {"llm": "llama-cpp small"}
SCENE = scene(step())


def test_a_run_that_was_stopped_finds_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "turn.jsonl"
    kept = ResultLog(path, MODELS).add(SCENE, "ours", 1, replace(NOTHING, voice_to_voice_ms=812.5, answer="Paris."))
    with path.open("a") as file:
        file.write('{"digest": "0", "mod')  # the process ended in the middle of a line
    log = ResultLog(path, MODELS)
    assert log.find(SCENE, "ours", 1) == kept
    assert log.find(SCENE, "hold 500", 1) is None and log.find(SCENE, "ours", 2) is None
    log.add(SCENE, "ours", 2, NOTHING)
    assert ResultLog(path, MODELS).find(SCENE, "ours", 2) is not None, "a line after the broken one can be read"


def test_results_of_another_scene_or_of_other_models_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "turn.jsonl"
    ResultLog(path, MODELS).add(SCENE, "ours", 1, NOTHING)
    assert ResultLog(path, MODELS).find(replace(SCENE, digest="1"), "ours", 1) is None
    assert ResultLog(path, {"llm": "llama-cpp large"}).find(SCENE, "ours", 1) is None


@pytest.mark.parametrize("content", ["hello\n", "[]\n", '{"models": {"llm": "llama-cpp small"}}\n'])
def test_a_file_that_is_no_result_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "turn.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"turn.jsonl: not results of this version \(.*\); remove it"):
        ResultLog(path, MODELS)

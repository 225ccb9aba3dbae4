"""Traces written by hand, replayed through the turn loop: what each policy makes of a pause is arithmetic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.test_scene_player import scene, step
from scripted_stages import scripted_stages
from speech_to_speech.bench.scene_curve import curve, curve_table
from speech_to_speech.bench.scene_replay import Replayed, replay
from speech_to_speech.bench.scene_traces import (
    Pause,
    Trace,
    TurnDetectorAnswer,
    cached_trace,
    has_trace,
    record_trace,
)
from speech_to_speech.conversation.turn_detection import SemanticVAD, ServerVAD

FRAME_MS = 32


def pause(frame: int, text: str, p_complete: float) -> Pause:
    """A pause that begins at the start of `frame`; the detector says `p_complete` at every silence."""
    answers = [TurnDetectorAnswer(silence, p_complete, 30.0) for silence in (96, 320, 640, 1280)]
    return Pause(frame * 512, frame * 512, text, 100.0, answers)


def trace_with_a_pause(pause_frames: int) -> Trace:
    """Voiced frames 10 to 39, a pause, 30 more voiced frames, 150 of silence."""
    resumes = 40 + pause_frames
    ends = resumes + 30
    voiced = [10 <= index < 40 or resumes <= index < ends for index in range(ends + 150)]
    return Trace(
        turn_end_ms=ends * FRAME_MS,
        probabilities=[0.95 if is_voiced else 0.01 for is_voiced in voiced],
        levels=[0.1 if is_voiced else 0.0003 for is_voiced in voiced],
        pauses=[pause(40, "I would like to fly to Boston and", 0.02), pause(ends, "I would like to fly home.", 0.98)],
    )


SIX_HUNDRED_MS = trace_with_a_pause(19)
"""19 frames are 608 ms."""


def test_a_pause_of_600_ms_is_cut_by_a_hold_of_500_and_not_by_one_of_800() -> None:
    assert replay(SIX_HUNDRED_MS, ServerVAD(silence_duration_ms=500)) == Replayed(True, None)
    kept = replay(SIX_HUNDRED_MS, ServerVAD(silence_duration_ms=800))
    # The first frame that ends 800 ms or more after the last voiced one: the 25th, at 800 ms.
    assert kept == Replayed(False, pytest.approx(800))


@pytest.mark.parametrize(("hold_ms", "waited_ms"), [(300, 320), (500, 512), (2000, 2016)])
def test_the_wait_of_a_hold_is_itself_rounded_up_to_a_frame(hold_ms: int, waited_ms: int) -> None:
    found = replay(trace_with_a_pause(3), ServerVAD(silence_duration_ms=hold_ms))
    assert found == Replayed(False, pytest.approx(waited_ms))


def test_ours_lets_an_unfinished_sentence_pause_and_answers_a_finished_one_soon() -> None:
    found = replay(SIX_HUNDRED_MS, SemanticVAD())
    # p = 0.98: 350 + (700 - 350) * 0.02 / 0.5 = 364 ms, so 384 ms at the end of a frame.
    assert found == Replayed(False, pytest.approx(384))


def test_ours_cuts_a_pause_that_sounds_complete() -> None:
    sounds_complete = replace(
        SIX_HUNDRED_MS, pauses=[pause(40, "I would like to fly.", 0.98), *SIX_HUNDRED_MS.pauses[1:]]
    )
    assert replay(sounds_complete, SemanticVAD()).cut_off


def test_a_slow_transcript_is_waited_for() -> None:
    first, last = SIX_HUNDRED_MS.pauses
    slow = replace(SIX_HUNDRED_MS, pauses=[first, replace(last, took_ms=1500.0)])
    # Asked for at the first silent frame's end.
    assert replay(slow, SemanticVAD()).wait_ms == pytest.approx(FRAME_MS + 1500)


def test_a_turn_without_words_is_not_answered() -> None:
    silent = replace(SIX_HUNDRED_MS, pauses=[replace(one, text="") for one in SIX_HUNDRED_MS.pauses])
    assert replay(silent, ServerVAD(silence_duration_ms=800)) == Replayed(False, None)


def test_the_curve_counts_each_policy_by_source() -> None:
    real, synthetic = replace(scene(step()), real=True), scene(step())
    points = {
        (point.policy, point.source): point
        for point in curve([(real, SIX_HUNDRED_MS), (synthetic, trace_with_a_pause(3))])
    }
    assert (points["hold 500", "all"].cut_off.count, points["hold 500", "all"].cut_off.n) == (1, 2)
    assert points["hold 500", "real"].cut_off.count == 1 and points["hold 500", "synthetic"].cut_off.count == 0
    wait = points["hold 800", "all"].wait_ms
    assert wait is not None and (wait.n, wait.median) == (2, pytest.approx(800))
    lines = [line.split() for line in curve_table(list(points.values())).splitlines()]
    assert ["hold", "2000", "real", "2016", "[2016-2016]", "0/1", "[0%-79%]", "0"] in lines


def test_a_recorded_trace_knows_frames_levels_pauses_and_the_end_of_the_turn() -> None:
    trace = record_trace(scene(step(offset_ms=640)), scripted_stages())  # voiced from 640 to 1040 ms, full frames
    voiced = [index for index, probability in enumerate(trace.probabilities) if probability > 0.5]
    assert (voiced[0], voiced[-1]) == (20, 32)
    assert trace.levels[25] == pytest.approx(0.5, abs=0.01) and trace.levels[10] < 0.001
    assert trace.turn_end_ms == 1040
    (found,) = trace.pauses
    assert (found.voiced_end, found.text) == (33 * 512, "hello")
    assert [(answer.silence_ms, answer.p_complete) for answer in found.answers] == [
        (96, 1.0),
        (320, 1.0),
        (640, 1.0),
        (1280, 1.0),
    ]


def test_a_trace_is_recorded_once_per_scene_and_models(tmp_path: Path) -> None:
    models = {"vad": "a", "turn": "b", "stt": "c"}
    first = cached_trace(scene(step()), tmp_path, models, scripted_stages)

    def never() -> None:
        raise AssertionError("the trace is there")

    assert cached_trace(scene(step()), tmp_path, models, never) == first  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        cached_trace(scene(step()), tmp_path, models | {"stt": "d"}, never)  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        cached_trace(replace(scene(step()), digest="1"), tmp_path, models, never)  # type: ignore[arg-type]


def test_only_scenes_with_one_turn_before_the_assistant_speaks_have_a_trace() -> None:
    assert has_trace(scene(step(), step("assistant_start"), interrupted=True))
    assert not has_trace(scene(step(), step("user_end")))
    assert not has_trace(scene(step(role="noise"), reply=False))

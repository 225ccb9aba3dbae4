"""Verdicts on hand-made recordings: every expected number is arithmetic on the times written here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.test_scene_player import scene, step
from speech_to_speech.bench.playback_gaps import Gap
from speech_to_speech.bench.scene_judge import Verdict, judge, words_off
from speech_to_speech.bench.scene_player import PlayedScene, TimedEvent
from speech_to_speech.bench.scenes import Leak, Scene

# `step()` is voiced from its first to its last sample, 400 ms: a turn from 100 to 500 ms.


def delta(ms: float, item: str = "item_1") -> TimedEvent:
    event = {"type": "response.output_audio.delta", "response_id": f"of_{item}", "item_id": item, "audio_ms": 100}
    return TimedEvent(ms, "in", event)


def committed(ms: float) -> TimedEvent:
    return TimedEvent(ms, "in", {"type": "input_audio_buffer.committed", "item_id": "user"})


def truncated(ms: float, item: str = "item_1", transcript: str = "Once upon a time") -> list[TimedEvent]:
    shape = {"id": item, "content": [{"type": "output_audio", "transcript": transcript}]}
    return [
        TimedEvent(ms, "out", {"type": "conversation.item.truncate", "item_id": item, "audio_end_ms": 0}),
        TimedEvent(ms, "in", {"type": "conversation.item.retrieved", "item": shape}),
    ]


def verdict(
    judged: Scene,
    audible: list[tuple[float, float]],
    events: list[TimedEvent],
    starts: tuple[float | None, ...] = (100,),
    gaps: tuple[Gap, ...] = (),
    heard: str = "",
) -> Verdict:
    """`audible`: the assistant sounds from … to … ms, in a recording of ten seconds."""
    assistant = np.zeros(240_000, np.float32)
    for start, end in audible:
        assistant[int(24 * start) : int(24 * end)] = 0.3
    return judge(judged, PlayedScene(np.zeros_like(assistant), assistant, tuple(events), starts, gaps), lambda _: heard)


def test_the_wait_is_from_the_last_voiced_to_the_first_audible_sample() -> None:
    found = verdict(scene(step()), [(1300, 2000)], [committed(900), delta(1280)])
    assert found.voice_to_voice_ms == pytest.approx(800, abs=0.1)
    assert (found.cut_off, found.answered, found.late, found.turns) == (False, True, False, 1)


def test_an_answer_after_two_seconds_is_late_and_so_is_none() -> None:
    late = verdict(scene(step()), [(2501, 3000)], [committed(900), delta(2480)])
    assert (late.answered, late.late) == (True, True)
    none = verdict(scene(step()), [], [committed(900)])
    assert (none.voice_to_voice_ms, none.answered, none.late) == (None, False, True)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([committed(480), committed(900), delta(1280)], id="committed before the user resumed"),
        pytest.param([delta(300, "item_0"), committed(900), delta(1280)], id="answered before the user resumed"),
    ],
)
def test_a_turn_that_ends_before_the_user_does_is_cut_off_and_its_wait_is_not_counted(events: list[Any]) -> None:
    found = verdict(scene(step()), [(1300, 2000)], events)
    assert (found.cut_off, found.voice_to_voice_ms, found.late) == (True, None, None)


def test_a_second_turn_can_be_cut_off_too() -> None:
    both = scene(step(), step("user_end"))
    found = verdict(both, [(5000, 5500)], [committed(900), committed(2200), delta(4980)], starts=(100, 2000))
    assert found.cut_off is True


INTERRUPTED = scene(step(), step("assistant_start", 1500), interrupted=True)
STARTS = (100, 2500)


def test_a_real_interruption_is_timed_from_its_onset_to_the_last_byte_and_to_silence() -> None:
    found = verdict(
        INTERRUPTED,
        [(1000, 2950), (3500, 4000)],
        [committed(900), delta(980), delta(2740), *truncated(2960), committed(3400), delta(3480, "item_2")],
        STARTS,
        heard="Once upon the time there",
    )
    assert found.stopped is True
    assert found.last_byte_ms == 240, "2740 - 2500"
    assert found.silence_ms == pytest.approx(450, abs=0.1)
    assert found.voice_to_voice_ms == pytest.approx(600, abs=0.1), "the second turn ends at 2900"
    assert (found.history, found.history_words_off) == ("Once upon a time", 2)


def test_an_interruption_that_is_ignored_has_no_wait() -> None:
    found = verdict(INTERRUPTED, [(1000, 9000)], [committed(900), delta(980)], STARTS)
    assert (found.stopped, found.silence_ms, found.voice_to_voice_ms, found.answered) == (False, None, None, None)


def test_an_answer_that_was_over_before_cannot_be_interrupted() -> None:
    found = verdict(INTERRUPTED, [(1000, 2000)], [committed(900), delta(980)], STARTS)
    assert found.stopped is None


def test_one_that_had_nothing_to_say_at_that_moment_is_stopped_as_well() -> None:
    events = [committed(900), delta(980), *truncated(2960), committed(3400), delta(3480, "item_2")]
    found = verdict(INTERRUPTED, [(1000, 1700), (3500, 4000)], events, STARTS)
    assert (found.stopped, found.silence_ms, found.last_byte_ms) == (True, 0, 0)


def test_after_an_answer_that_was_over_the_second_turn_is_answered_as_any() -> None:
    events = [committed(900), delta(980), committed(3400), delta(3480, "item_2")]
    found = verdict(INTERRUPTED, [(1000, 2000), (3500, 4000)], events, STARTS)
    assert found.stopped is None
    assert found.voice_to_voice_ms == pytest.approx(600, abs=0.1)


BACKCHANNEL = scene(step(), step("assistant_start", 1500, "backchannel"), interrupted=False)


def test_a_backchannel_that_stops_the_assistant_is_a_false_stop() -> None:
    events = [committed(900), delta(980), delta(2400), *truncated(2960)]
    assert verdict(BACKCHANNEL, [(1000, 2950)], events, STARTS).stopped is True
    went_on = verdict(BACKCHANNEL, [(1000, 9000)], [committed(900), delta(980)], STARTS)
    assert went_on.stopped is False
    assert went_on.voice_to_voice_ms == pytest.approx(500, abs=0.1), "the turn is the question"


def test_one_that_stalls_at_that_moment_and_goes_on_later_was_not_stopped() -> None:
    found = verdict(BACKCHANNEL, [(1000, 1900), (3400, 5000)], [committed(900), delta(980), delta(3380)], STARTS)
    assert found.stopped is False


def test_a_leak_that_stops_the_assistant_is_a_false_stop() -> None:
    leaking = scene(step(), interrupted=False, leak=Leak(60, -20))
    assert verdict(leaking, [(1000, 2000)], [delta(980), *truncated(2000)]).stopped is True
    assert verdict(leaking, [(1000, 2000)], [delta(980)]).stopped is False


def test_a_gap_around_the_users_sound_is_a_hold_and_elsewhere_an_underrun() -> None:
    gaps = (Gap(1500, 200), Gap(2700, 300), Gap(7000, 5))
    found = verdict(BACKCHANNEL, [(1000, 9000)], [delta(980)], STARTS, gaps)
    assert (found.underruns, found.underrun_ms, found.holds) == (1, 200, 1), "5 ms are not heard"


def test_an_answer_to_a_noise_is_unwanted() -> None:
    noise = scene(step(role="noise"), reply=False)
    assert verdict(noise, [(1000, 2000)], [delta(980)]).unwanted_reply is True
    silent = verdict(noise, [], [])
    assert (silent.unwanted_reply, silent.cut_off, silent.answered) == (False, None, None)


def test_words_are_compared_without_case_and_marks() -> None:
    assert words_off("Once upon a time.", "once, upon a TIME") == 0
    assert words_off("one two three", "one three four") == 2
    assert words_off("", "one two") == 2

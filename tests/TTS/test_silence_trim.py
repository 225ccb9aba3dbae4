from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_to_speech.stage_types import Samples
from speech_to_speech.TTS.silence_trim import SilenceTrimmer

RATE = 1_000  # one sample is one millisecond


def audio(*stretches: tuple[float, int]) -> Samples:
    return np.concatenate([np.full(length, level, np.float32) for level, length in stretches])


def trimmed(chunks: list[Samples], lead_ms: float = 20, trail_ms: float = 150) -> Samples:
    trimmer = SilenceTrimmer(RATE, lead_ms=lead_ms, trail_ms=trail_ms)
    return np.concatenate([*map(trimmer.process, chunks), trimmer.finish()])


CLAUSE = audio((0.0, 60), (0.5, 100), (0.001, 80), (-0.3, 50), (0.0, 240))


@given(st.lists(st.integers(0, len(CLAUSE)), max_size=8))
@settings(deadline=None)
def test_the_ends_are_shortened_and_the_middle_kept(cuts: list[int]) -> None:
    expected = audio((0.0, 20), (0.5, 100), (0.001, 80), (-0.3, 50), (0.0, 150))
    assert trimmed(np.split(CLAUSE, sorted(cuts))).tolist() == expected.tolist()


def test_less_silence_than_allowed_is_not_stretched() -> None:
    clause = audio((0.0, 5), (0.5, 10), (0.0, 7))
    assert trimmed([clause]).tolist() == clause.tolist()


def test_sound_is_not_held_back() -> None:
    trimmer = SilenceTrimmer(RATE, lead_ms=20, trail_ms=150)
    assert len(trimmer.process(audio((0.0, 60), (0.5, 100), (0.0, 30)))) == 120


@pytest.mark.parametrize("length", [0, 500])
def test_a_silent_clause_is_nothing(length: int) -> None:
    assert len(trimmed([audio((0.001, length))])) == 0


def test_a_sound_at_minus_45_decibels_is_no_silence() -> None:
    assert len(trimmed([audio((10 ** (-45 / 20), 30))])) == 30

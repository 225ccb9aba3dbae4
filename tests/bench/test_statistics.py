"""Intervals, against published and hand-computed values."""

from __future__ import annotations

import pytest

from speech_to_speech.bench.statistics import median, rate


def test_the_interval_of_a_rate_is_wilsons() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81/263 -> 0.2553 to 0.3662; 0/20 -> 0 to 0.1611.
    found = rate([True] * 81 + [False] * 182)
    assert (found.low, found.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    none = rate([False] * 20)
    assert (none.low, none.high) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_what_is_unknown_does_not_count() -> None:
    assert (rate([True, None, False]).count, rate([True, None, False]).n) == (1, 2)
    assert rate([None]).n == 0
    assert median([None]) is None


def test_the_interval_of_a_median_lies_within_the_values_and_around_it() -> None:
    found = median([100.0, 200.0, 300.0, 400.0, None, 5000.0])
    assert found is not None
    assert (found.n, found.median) == (5, 300.0)
    assert 100 <= found.low < 300 < found.high <= 5000


def test_the_median_of_one_value_is_that_value() -> None:
    found = median([7.0])
    assert found is not None and (found.low, found.median, found.high) == (7, 7, 7)

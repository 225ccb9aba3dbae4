"""Sounds that say nothing, made by arithmetic: 24 kHz mono."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RATE = 24_000


def _time(seconds: float) -> NDArray[np.float64]:
    return np.arange(int(RATE * seconds)) / RATE


def noise() -> NDArray[np.float32]:
    """Two seconds of white noise."""
    return np.random.default_rng(2).normal(0, 0.1, 2 * RATE).astype(np.float32)


def hum() -> NDArray[np.float32]:
    """Two seconds of mains hum with harmonics."""
    time = _time(2)
    return sum(0.3 / n * np.sin(2 * np.pi * 50 * n * time) for n in range(1, 6)).astype(np.float32)  # type: ignore[union-attr]


def music() -> NDArray[np.float32]:
    """Four chords of half a second, plucked."""
    time = _time(0.5)
    roots = (261.6, 220.0, 174.6, 196.0)
    chords = [
        sum(np.sin(2 * np.pi * root * ratio * time) for ratio in (1, 1.26, 1.5)) * np.exp(-time / 0.3) for root in roots
    ]
    return (0.2 * np.concatenate(chords)).astype(np.float32)

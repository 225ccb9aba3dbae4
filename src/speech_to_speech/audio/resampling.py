"""Sample rate conversion of a stream: chunks of any size in, chunks out, about a millisecond behind.

A polyphase windowed-sinc filter. Libraries of higher order work on blocks (soxr's HQ stream holds back up
to 37 ms of audio at 24 kHz → 16 kHz), and what the microphone's path holds back is waiting time before the reply.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, gcd

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from speech_to_speech.stage_types import Samples

_PASSBAND = 0.875
"""Passband edge as a share of the lower rate's Nyquist frequency (7 kHz when one side is 16 kHz). The stopband
begins as far above Nyquist, so what aliases stays out of the passband."""

_STOPBAND_DB = 80.0
"""Attenuation of images and aliases; the noise of a good microphone in a quiet room is some 60 dB below speech."""

_WINDOWS_PER_STEP = 8_192
"""Output samples computed at once; bounds the memory of a long input to a few MB."""


@dataclass(frozen=True, slots=True)
class _Filter:
    """Reduced ratio `up`/`down`, and one row of weights per phase: `[up, taps]`, each row of unit DC gain."""

    up: int
    down: int
    reach: int
    weights: NDArray[np.float32]


@lru_cache(maxsize=32)
def _design(source_rate: int, target_rate: int) -> _Filter:
    """Kaiser's formulas for window shape and length: Oppenheim & Schafer, Discrete-Time Signal Processing, 7.6."""
    common = gcd(source_rate, target_rate)
    up, down = target_rate // common, source_rate // common
    cutoff = min(1.0, target_rate / source_rate)  # as a share of the source's Nyquist frequency
    transition = 2.0 * (1.0 - _PASSBAND) * cutoff * np.pi  # radians per source sample
    length = (_STOPBAND_DB - 7.95) / (2.285 * transition)
    beta = 0.1102 * (_STOPBAND_DB - 8.7)
    reach = ceil(length / 2.0)
    # Row p weighs the source samples floor(t)-reach+1 … floor(t)+reach for an output at t = floor(t) + p/up.
    distance = np.arange(1 - reach, reach + 1)[None, :] - np.arange(up)[:, None] / up
    window = np.i0(beta * np.sqrt(np.clip(1.0 - (distance / reach) ** 2, 0.0, 1.0)))
    weights = np.sinc(cutoff * distance) * window
    weights /= weights.sum(axis=1, keepdims=True)
    return _Filter(up, down, reach, weights.astype(np.float32))


class StreamResampler:
    """Converts one mono stream from `source_rate` to `target_rate` (Hz, both positive).

    The output is the same however the input is cut, is not shifted in time, and after `flush` has
    `round(samples in × target_rate / source_rate)` samples. Equal rates pass the input through.
    """

    _held: Samples

    def __init__(self, source_rate: int, target_rate: int) -> None:
        if source_rate <= 0 or target_rate <= 0:
            raise ValueError(f"sample rates must be positive, got {source_rate} and {target_rate}")
        self.source_rate = source_rate
        self.target_rate = target_rate
        self._filter = None if source_rate == target_rate else _design(source_rate, target_rate)
        self._reset()

    def process(self, samples: Samples) -> Samples:
        """Take the next input, return the output that is complete so far (possibly empty)."""
        if self._filter is None:
            return samples
        self._received += len(samples)
        self._held = np.concatenate((self._held, samples.astype(np.float32, copy=False)))
        return self._take(self._ready(self._filter))

    def flush(self) -> Samples:
        """Return the rest of the output; the next `process` begins a new stream."""
        if self._filter is None:
            return np.zeros(0, np.float32)
        # `round` halves to even where this rounds up; either is within the promised sample.
        total = (2 * self._received * self._filter.up + self._filter.down) // (2 * self._filter.down)
        self._held = np.concatenate((self._held, np.zeros(self._filter.reach + 1, np.float32)))
        rest = self._take(total - self._made)
        self._reset()
        return rest

    def _reset(self) -> None:
        self._received = 0  # source samples taken
        self._made = 0  # target samples given
        before = 0 if self._filter is None else self._filter.reach - 1
        self._held = np.zeros(before, np.float32)  # source samples still needed, with silence before the first
        self._held_start = -before  # source position of `_held[0]`

    def _ready(self, design: _Filter) -> int:
        """How many more outputs have every source sample they weigh: floor(t) + reach < received."""
        complete = self._received - design.reach
        if complete <= 0:
            return 0
        return max(0, (complete * design.up - 1) // design.down + 1 - self._made)

    def _take(self, count: int) -> Samples:
        assert self._filter is not None
        up, down, reach = self._filter.up, self._filter.down, self._filter.reach
        output = np.empty(count, np.float32)
        windows = sliding_window_view(self._held, 2 * reach) if count else None
        for start in range(0, count, _WINDOWS_PER_STEP):
            assert windows is not None
            stop = min(start + _WINDOWS_PER_STEP, count)
            ticks = np.arange(self._made + start, self._made + stop, dtype=np.int64) * down
            firsts = ticks // up - reach + 1 - self._held_start
            np.einsum("nt,nt->n", windows[firsts], self._filter.weights[ticks % up], out=output[start:stop])
        self._made += count
        needed = self._made * down // up - reach + 1
        self._held = self._held[needed - self._held_start :].copy()
        self._held_start = needed
        return output


def resample(samples: Samples, source_rate: int, target_rate: int) -> Samples:
    """Convert a whole recording."""
    resampler = StreamResampler(source_rate, target_rate)
    return np.concatenate((resampler.process(samples), resampler.flush()))

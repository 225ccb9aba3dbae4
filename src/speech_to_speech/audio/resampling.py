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

_BLOCK_SAMPLES = 32
"""Output samples of a block, at least, where the ratio allows it: few enough to waste little, enough for one matrix
product to be worth its call."""

_BLOCKS_PER_PRODUCT = 16
"""Rows of every matrix product. The number is fixed, so that an output sample is the sum of the same terms in the same
order however the input was cut; it fills the kernels of a BLAS evenly."""

_MAXIMUM_BLOCK_WEIGHTS = 1_000_000
"""Ratios whose block needs more weights than this (4 MB) are computed window by window: rates without much in common."""

_WINDOWS_PER_STEP = 8_192
"""Windows gathered at once; bounds the memory of a long input to a few MB."""


@dataclass(frozen=True, slots=True)
class _Filter:
    """Reduced ratio `up`/`down`, and one row of weights per phase: `[up, taps]`, each row of unit DC gain.

    `blocks` is the same as one matrix `[window, samples]`: a block of output samples (whole periods of the phases) is
    the source samples it can see times this. None where it would be too large.
    """

    up: int
    down: int
    reach: int
    weights: NDArray[np.float32]
    blocks: NDArray[np.float32] | None

    @property
    def block_step(self) -> int:
        """Source samples from one block to the next."""
        assert self.blocks is not None
        return self.blocks.shape[1] // self.up * self.down


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
    rows = weights.astype(np.float32)
    return _Filter(up, down, reach, rows, _block_matrix(up, down, rows))


def _block_matrix(up: int, down: int, weights: NDArray[np.float32]) -> NDArray[np.float32] | None:
    samples = up * max(1, _BLOCK_SAMPLES // up)
    taps = weights.shape[1]
    window = (samples - 1) * down // up + taps
    if window * samples > _MAXIMUM_BLOCK_WEIGHTS:
        return None
    matrix = np.zeros((window, samples), np.float32)
    for index in range(samples):
        first = index * down // up
        matrix[first : first + taps, index] = weights[index * down % up]
    return matrix


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
        """The next `count` output samples; source samples that only earlier ones could see are dropped."""
        if count == 0:
            return np.zeros(0, np.float32)
        assert self._filter is not None
        if self._filter.blocks is None:
            output = self._gathered(self._filter, count)
            needed = self._source_of(self._made + count)
        else:
            output = self._multiplied(self._filter, self._filter.blocks, count)
            block = self._filter.blocks.shape[1]
            needed = self._source_of((self._made + count) // block * block)
        self._made += count
        self._held = self._held[needed - self._held_start :].copy()
        self._held_start = needed
        return output

    def _source_of(self, position: int) -> int:
        """The first source sample that output `position` weighs."""
        assert self._filter is not None
        return position * self._filter.down // self._filter.up - self._filter.reach + 1

    def _multiplied(self, design: _Filter, matrix: NDArray[np.float32], count: int) -> Samples:
        """All blocks that hold a wanted sample; what of them is not complete yet is computed again when it is."""
        window, block = matrix.shape
        skipped = self._made % block
        products = -(-(skipped + count) // (block * _BLOCKS_PER_PRODUCT))
        rows = products * _BLOCKS_PER_PRODUCT
        source = np.zeros((rows - 1) * design.block_step + window, np.float32)
        held = min(len(source), len(self._held))
        source[:held] = self._held[:held]
        stride = source.itemsize
        windows: Samples = np.ndarray((rows, window), np.float32, source, strides=(design.block_step * stride, stride))
        output = np.empty((rows, block), np.float32)
        for start in range(0, rows, _BLOCKS_PER_PRODUCT):
            stop = start + _BLOCKS_PER_PRODUCT
            np.matmul(windows[start:stop], matrix, out=output[start:stop])
        return output.reshape(-1)[skipped : skipped + count]

    def _gathered(self, design: _Filter, count: int) -> Samples:
        """Every output's own window times the weights of its phase."""
        windows = sliding_window_view(self._held, 2 * design.reach)
        output = np.empty(count, np.float32)
        for start in range(0, count, _WINDOWS_PER_STEP):
            stop = min(start + _WINDOWS_PER_STEP, count)
            ticks = np.arange(self._made + start, self._made + stop, dtype=np.int64) * design.down
            firsts = ticks // design.up - design.reach + 1 - self._held_start
            np.einsum("nt,nt->n", windows[firsts], design.weights[ticks % design.up], out=output[start:stop])
        return output


def resample(samples: Samples, source_rate: int, target_rate: int) -> Samples:
    """Convert a whole recording."""
    resampler = StreamResampler(source_rate, target_rate)
    return np.concatenate((resampler.process(samples), resampler.flush()))

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
"""Rates without much in common, whose block would need more weights than this (4 MB), are computed window by window."""

_WINDOWS_PER_STEP = 8_192
"""Windows gathered at once; bounds the memory of a long input to a few MB."""


@dataclass(frozen=True, slots=True)
class _Filter:
    """Reduced ratio `up`/`down`, and one row of weights per phase: `[up, taps]`, each row of unit DC gain.

    `blocks` is the same as one matrix `[window, block]`: a block of output samples (whole periods of the phases, `step`
    source samples apart) is the source samples it can see times this. None where it would be too large. `padding`: the
    silence behind the newest sample that a computation may look at.
    """

    up: int
    down: int
    reach: int
    weights: NDArray[np.float32]
    blocks: NDArray[np.float32] | None
    block: int
    step: int
    padding: Samples


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
    block = up * max(1, _BLOCK_SAMPLES // up)
    step = block // up * down
    seen = step + 2 * reach
    if seen * block > _MAXIMUM_BLOCK_WEIGHTS:
        return _Filter(up, down, reach, rows, None, 1, 0, np.zeros(2 * reach, np.float32))
    matrix = np.zeros((seen, block), np.float32)
    for index in range(block):
        first = index * down // up
        matrix[first : first + 2 * reach, index] = rows[index * down % up]
    padding = np.zeros(_BLOCKS_PER_PRODUCT * step + seen, np.float32)
    return _Filter(up, down, reach, rows, matrix, block, step, padding)


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
        design = self._filter
        if design is None:
            return samples
        self._received += len(samples)
        complete = self._received - design.reach
        ready = (complete * design.up - 1) // design.down + 1 if complete > 0 else 0
        return self._take(design, samples, max(0, ready - self._made))

    def missing(self, count: int) -> int:
        """How many more input samples the next `count` (at least 1) output samples need; 0 or less: they are ready."""
        design = self._filter
        if design is None:
            return count
        # An output at t needs every sample up to floor(t) + reach.
        return (self._made + count - 1) * design.down // design.up + design.reach + 1 - self._received

    def flush(self) -> Samples:
        """Return the rest of the output; the next `process` begins a new stream."""
        design = self._filter
        if design is None:
            return np.zeros(0, np.float32)
        # `round` halves to even where this rounds up; either is within the promised sample.
        total = (2 * self._received * design.up + design.down) // (2 * design.down)
        rest = self._take(design, np.zeros(0, np.float32), total - self._made)
        self._reset()
        return rest

    def _reset(self) -> None:
        self._received = 0  # source samples taken
        self._made = 0  # target samples given
        before = 0 if self._filter is None else self._filter.reach - 1
        self._held = np.zeros(before, np.float32)  # source samples still needed, with silence before the first
        self._held_start = -before  # source position of `_held[0]`

    def _take(self, design: _Filter, samples: Samples, count: int) -> Samples:
        """Hold `samples`, too; return the next `count` outputs and let go of what only those and earlier ones see."""
        source = np.concatenate((self._held, samples.astype(np.float32, copy=False), design.padding))
        if design.blocks is None:
            output = self._gathered(design, source, count)
        else:
            output = self._multiplied(design, design.blocks, source, count)
        self._made += count
        needed = self._made // design.block * design.block * design.down // design.up - design.reach + 1
        self._held = source[needed - self._held_start : len(source) - len(design.padding)].copy()
        self._held_start = needed
        return output

    def _multiplied(self, design: _Filter, matrix: NDArray[np.float32], source: Samples, count: int) -> Samples:
        """All blocks that hold a wanted sample; what of them is not complete yet is computed again when it is."""
        skipped = self._made % design.block
        rows = -(-(skipped + count) // (design.block * _BLOCKS_PER_PRODUCT)) * _BLOCKS_PER_PRODUCT
        strides = (design.step * source.itemsize, source.itemsize)
        windows: Samples = np.ndarray((rows, len(matrix)), np.float32, source, strides=strides)
        output = np.empty((rows, design.block), np.float32)
        for start in range(0, rows, _BLOCKS_PER_PRODUCT):
            stop = start + _BLOCKS_PER_PRODUCT
            np.matmul(windows[start:stop], matrix, out=output[start:stop])
        return output.reshape(-1)[skipped : skipped + count]

    def _gathered(self, design: _Filter, source: Samples, count: int) -> Samples:
        """Every output's own window times the weights of its phase."""
        windows = sliding_window_view(source, 2 * design.reach)
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

"""Whisper's log-mel spectrogram in numpy: the front end of Smart Turn and of Whisper itself.

Source of every constant: openai/whisper `audio.py` (25 ms Hann windows every 10 ms at 16 kHz, Slaney mel filters up
to 8 kHz, log10 floored at 1e-10 and at 8 below the loudest bin, then (x + 4) / 4).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from speech_to_speech.stage_types import RECOGNITION_RATE, Samples

HOP_SAMPLES = 160
"""Samples per mel frame: 10 ms."""

_WINDOW_SAMPLES = 400

# Frames computed at a time. The block stays in the first-level cache (4 ms for 8 s of audio in one piece, 2 ms in
# blocks), and 16 x 201 x 80 multiplications are few enough that OpenBLAS does not wake its threads for them.
_BLOCK_FRAMES = 16


def log_mel(samples: Samples, mels: int = 80) -> NDArray[np.float32]:
    """The log-mel spectrogram `[mels, frames]` of `samples`, with `frames = len(samples) // HOP_SAMPLES`.

    Frame `i` is centred on sample `160 * i`; the audio is mirrored at both ends, so at least 201 samples are needed.
    """
    frames = len(samples) // HOP_SAMPLES
    window, filters = _window(), mel_filters(mels)
    padded = np.pad(samples.astype(np.float32, copy=False), _WINDOW_SAMPLES // 2, mode="reflect")
    windows = sliding_window_view(padded, _WINDOW_SAMPLES)[::HOP_SAMPLES]
    energies = np.empty((frames, mels), dtype=np.float32)
    for start in range(0, frames, _BLOCK_FRAMES):
        end = min(start + _BLOCK_FRAMES, frames)
        spectrum = np.fft.rfft(windows[start:end] * window, axis=-1)
        energies[start:end] = (spectrum.real**2 + spectrum.imag**2) @ filters
    logarithm = np.log10(np.maximum(energies, 1e-10))
    logarithm = np.maximum(logarithm, logarithm.max() - 8.0)
    return np.ascontiguousarray(((logarithm + 4.0) / 4.0).T)


@cache
def _window() -> NDArray[np.float32]:
    return np.hanning(_WINDOW_SAMPLES + 1)[:-1].astype(np.float32)


@cache
def mel_filters(mels: int) -> NDArray[np.float32]:
    """Triangular mel filters `[201, mels]` on Slaney's scale, each of area 2 / its width in Hz.

    The scale is linear (200 / 3 Hz per mel) up to 1 kHz and logarithmic (27 mels per factor of 6.4) above
    (M. Slaney, Auditory Toolbox, 1998).
    """
    bins = np.fft.rfftfreq(_WINDOW_SAMPLES, 1 / RECOGNITION_RATE)
    top = 15 + 27 * np.log(RECOGNITION_RATE / 2 / 1000) / np.log(6.4)
    scale = np.linspace(0.0, top, mels + 2)
    corners = np.where(scale < 15, scale * 200 / 3, 1000 * np.exp((scale - 15) * np.log(6.4) / 27))
    low, centre, high = corners[:-2], corners[1:-1], corners[2:]
    rising = (bins[:, None] - low) / (centre - low)
    falling = (high - bins[:, None]) / (high - centre)
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    filters: NDArray[np.float32] = (triangles * (2 / (high - low))).astype(np.float32)
    return filters

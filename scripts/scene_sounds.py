"""Sounds that are no speech, made by arithmetic, and pauses put into speech: 24 kHz mono."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RATE = 24_000

WINDOW = RATE // 50
"""Samples of the window in which a level is taken: 20 ms."""

FADE = RATE // 200
"""Samples over which a cut is faded: 5 ms."""


def coughs(count: int = 3, seed: int = 1) -> NDArray[np.float32]:
    """Bursts of noise that fall off in 120 ms, resonant around 700 Hz, half a second apart."""
    burst_samples = RATE // 3
    decay = np.exp(-np.arange(burst_samples) / RATE / 0.06)
    burst = np.random.default_rng(seed).normal(size=burst_samples) * decay
    spectrum = np.fft.rfft(burst)
    frequency = np.fft.rfftfreq(len(burst), 1 / RATE)
    shaped = np.fft.irfft(spectrum / (1 + ((frequency - 700) / 400) ** 2), len(burst))
    shaped *= 0.5 / np.abs(shaped).max()
    pause = np.zeros(RATE // 5)
    return np.concatenate([shaped, *[part for _ in range(count - 1) for part in (pause, shaped)]]).astype(np.float32)


def background(kind: str, seconds: float, level: float, seed: int) -> NDArray[np.float32]:
    """Noise of RMS `level` (a share of full scale). `kind`: "white", "pink" (-3 dB per octave) or "hum" (50 Hz)."""
    random = np.random.default_rng(seed)
    count = int(RATE * seconds)
    if kind == "hum":
        time = np.arange(count) / RATE
        phases = random.uniform(0, 2 * np.pi, 5)
        sound = sum(np.sin(2 * np.pi * 50 * n * time + phases[n - 1]) / n for n in range(1, 6))
    elif kind in ("white", "pink"):
        sound = random.normal(size=count)
        if kind == "pink":
            frequency = np.fft.rfftfreq(count, 1 / RATE)
            sound = np.fft.irfft(np.fft.rfft(sound) / np.sqrt(np.maximum(frequency, 20.0)), count)
    else:
        raise ValueError(f"noise {kind!r}: expected white, pink or hum")
    return np.asarray(sound * level / np.sqrt(np.mean(np.square(sound))), np.float32)


def levels(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """RMS of each window of 20 ms."""
    whole = samples[: len(samples) // WINDOW * WINDOW].reshape(-1, WINDOW)
    return np.asarray(np.sqrt(np.mean(np.square(whole, dtype=np.float64), axis=1)))


def room_tone(like: NDArray[np.float32], milliseconds: float, seed: int) -> NDArray[np.float32]:
    """What the room of the recording `like` sounds like while nobody speaks: noise as loud as its quietest 60 ms."""
    floor = float(np.sort(levels(like))[:3].mean())
    return background("pink", milliseconds / 1000, floor, seed) if floor > 0 else _silence(milliseconds)


def with_pauses(parts: Sequence[NDArray[np.float32]], pauses_ms: Sequence[float], seed: int) -> NDArray[np.float32]:
    """The parts with `pauses_ms` of room tone between them. A single part is cut at as many quiet points."""
    whole = np.concatenate(parts)
    if len(parts) == 1 and pauses_ms:
        parts = _cut(parts[0], len(pauses_ms))
    if len(parts) != len(pauses_ms) + 1:
        raise ValueError(f"{len(parts)} parts need {len(parts) - 1} pauses, got {len(pauses_ms)}")
    joined = [parts[0]]
    for index, (pause_ms, part) in enumerate(zip(pauses_ms, parts[1:], strict=True)):
        joined += [room_tone(whole, pause_ms, seed + index), part]
    return np.concatenate(joined)


def _cut(speech: NDArray[np.float32], cuts: int) -> list[NDArray[np.float32]]:
    """Cut near equal shares, each time at the quietest of the windows around, and faded so that nothing clicks."""
    windows = levels(speech)
    reach = max(1, len(windows) // (2 * (cuts + 1)) - 5)
    places = [0]
    for number in range(1, cuts + 1):
        middle = len(windows) * number // (cuts + 1)
        first = max(1, middle - reach)
        quietest = first + int(np.argmin(windows[first : middle + reach]))
        places.append(quietest * WINDOW + WINDOW // 2)
    pieces = []
    for start, end in zip(places, [*places[1:], len(speech)], strict=True):
        piece = speech[start:end].copy()
        piece[:FADE] *= np.linspace(0, 1, FADE, dtype=np.float32)
        piece[-FADE:] *= np.linspace(1, 0, FADE, dtype=np.float32)
        pieces.append(piece)
    return pieces


def _silence(milliseconds: float) -> NDArray[np.float32]:
    return np.zeros(int(RATE * milliseconds / 1000), np.float32)

"""Shortens the silence a synthesiser puts around a clause, while its audio streams through."""

from __future__ import annotations

import numpy as np

from speech_to_speech.stage_types import Samples

_SILENCE_DBFS = -50.0
"""Samples below this level are silence. What Piper makes of silence lies below -70 dBFS; a threshold of -45 would place
the onset of a clause less than 10 ms later."""

_THRESHOLD = 10 ** (_SILENCE_DBFS / 20)


class SilenceTrimmer:
    """Trims one clause: at most `lead_ms` of silence before the first sound, `trail_ms` after the last."""

    def __init__(self, sample_rate: int, *, lead_ms: float, trail_ms: float) -> None:
        self._lead = round(lead_ms * sample_rate / 1000)
        self._trail = round(trail_ms * sample_rate / 1000)
        self._started = False
        self._quiet = np.zeros(0, np.float32)  # silence that may turn out to be the clause's last

    def process(self, samples: Samples) -> Samples:
        """Return the audio up to the last sound so far; silence waits until it is known what follows it."""
        quiet = np.concatenate((self._quiet, samples))
        loud = np.flatnonzero(np.abs(quiet) > _THRESHOLD)
        if len(loud) == 0:
            self._quiet = quiet
            return quiet[:0]
        start = 0 if self._started else max(0, int(loud[0]) - self._lead)
        end = int(loud[-1]) + 1
        self._started = True
        self._quiet = quiet[end:]
        return quiet[start:end]

    def finish(self) -> Samples:
        """Return what remains of the silence at the end; nothing when the clause was silent throughout."""
        return self._quiet[: self._trail] if self._started else self._quiet[:0]

"""From speech probabilities of single frames to onsets, pauses and resumptions."""

from __future__ import annotations

from enum import Enum

from speech_to_speech.conversation.turn_detection import NEGATIVE_THRESHOLD_MARGIN
from speech_to_speech.stage_types import VAD_FRAME_SAMPLES

ONSET_FRAMES = 2
"""Voiced frames in a row that make an onset: one frame of 32 ms may be a click."""


QUIET_SHARE = 0.01
"""A frame below this share of the loudest one's level (-40 dB) holds no speech that a recogniser could use. A detector
calls another 60 to 130 ms behind the last sound "voiced"; in noise no frame is that quiet, and nothing is gained."""


class VoiceChange(Enum):
    """What one frame changed."""

    ONSET = "onset"
    PAUSE = "pause"
    RESUME = "resume"


class VoiceActivity:
    """Follows one session's frames. Positions are samples at 16 kHz from the start of the session's audio."""

    def __init__(self) -> None:
        self.speaking = False
        self.onset = 0
        """First sample of the speech going on (valid while `speaking`)."""
        self.voiced_end = 0
        """One past the last voiced sample."""
        self.audible_end = 0
        """One past the last voiced sample of a frame that is not quiet: what comes after it holds no more words."""
        self.frame_end = 0
        """One past the last sample judged."""
        self._run = 0
        self.loudness = 0.0
        """Level of the newest frame, as a share of the loudest one of this speech."""
        self._loudest = 0.0

    def frame(self, index: int, probability: float, threshold: float, level: float = 0.0) -> VoiceChange | None:
        """Take the probability and the level (RMS) of frame `index`; returns what it changed, if anything."""
        start = index * VAD_FRAME_SAMPLES
        was_pausing = self.pausing
        self.frame_end = start + VAD_FRAME_SAMPLES
        if not self.speaking:
            self._loudest = level
            return self._silent_frame(start, probability >= threshold)
        if probability >= max(threshold - NEGATIVE_THRESHOLD_MARGIN, 0.01):
            self.voiced_end = self.frame_end
            self._loudest = max(self._loudest, level)
            self.loudness = level / self._loudest if self._loudest else 1.0
            if self.loudness >= QUIET_SHARE:
                self.audible_end = self.frame_end
            return VoiceChange.RESUME if was_pausing else None
        return None if was_pausing else VoiceChange.PAUSE

    @property
    def pausing(self) -> bool:
        """True from the first non-speech frame after speech, until speech or `end`."""
        return self.speaking and self.frame_end > self.voiced_end

    @property
    def is_quiet(self) -> bool:
        """True from the first frame without sound after speech, whether the detector has noticed or not."""
        return self.speaking and self.frame_end > self.audible_end

    @property
    def silence_samples(self) -> int:
        """Silence after the last voiced sample, as far as judged."""
        return self.frame_end - self.voiced_end

    @property
    def voiced_samples(self) -> int:
        """Length of the speech going on, from its onset to its last voiced sample; 0 when there is none."""
        return self.voiced_end - self.onset if self.speaking else 0

    def end(self) -> None:
        """The turn is over: the next voiced frames are a new onset."""
        self.speaking = False
        self._run = 0

    def _silent_frame(self, start: int, voiced: bool) -> VoiceChange | None:
        if not voiced:
            self._run = 0
            return None
        self._run += 1
        if self._run < ONSET_FRAMES:
            return None
        self.speaking = True
        self.onset = start - (self._run - 1) * VAD_FRAME_SAMPLES
        self.voiced_end = self.audible_end = self.frame_end
        return VoiceChange.ONSET

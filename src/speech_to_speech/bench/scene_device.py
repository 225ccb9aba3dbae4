"""Microphone and speaker of a scene: plays the user's steps into the one, records both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import numpy as np

from speech_to_speech.audio.pcm import pcm16_to_samples, samples_to_pcm16
from speech_to_speech.bench.recorded_turn import AUDIBLE_LEVEL
from speech_to_speech.bench.scene_sound import UserSide
from speech_to_speech.bench.scenes import Scene
from speech_to_speech.client.audio_device import RATE
from speech_to_speech.client.file_device import FileDevice
from speech_to_speech.stage_types import Samples


class SceneDevice(FileDevice):
    """What the user says follows what the speaker plays; with a leak, the microphone hears the speaker, too."""

    def __init__(
        self,
        scene: Scene,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(np.zeros(0, np.float32), clock=clock, sleep=sleep)
        self.user = UserSide(scene)
        self.first_audible: int | None = None
        """Sample at which the assistant was audible first after the user's newest step."""
        self.last_audible = 0
        """One past the last audible sample of the assistant."""
        self._leak = scene.leak
        self._captured = bytearray()
        self._played = bytearray()

    @property
    def position(self) -> int:
        """Samples recorded."""
        return len(self._played) // 2

    @property
    def now_ms(self) -> float:
        """Length of the recording: the time that all times of a scene are told in."""
        return self.position / RATE * 1000

    @property
    def recording(self) -> tuple[Samples, Samples]:
        """What the microphone heard, and what the speaker played."""
        return pcm16_to_samples(self._captured), pcm16_to_samples(self._played)

    def forget_audible(self) -> None:
        """From here on `first_audible` looks for another reply."""
        self.first_audible = None

    def _capture(self, played: bytes) -> bytes:
        start = self.position
        self._played += played
        self._listen(start, pcm16_to_samples(played))
        heard = self.user.samples(start, self.position)
        captured = samples_to_pcm16(heard + self._leaked(start) if self._leak else heard)
        self._captured += captured
        return captured

    def _listen(self, start: int, played: Samples) -> None:
        audible = np.flatnonzero(np.abs(played) > AUDIBLE_LEVEL) + start
        if not len(audible):
            return
        self.last_audible = int(audible[-1]) + 1
        later = audible[audible >= self.user.last_end]
        if len(later):
            if self.first_audible is None:
                self.first_audible = int(later[0])
            if self.user.awaits_assistant:
                self.user.assistant_heard(int(later[0]))
                self.forget_audible()

    def _leaked(self, start: int) -> Samples:
        """The part of the recorded playback that reaches the microphone in the newest block."""
        assert self._leak is not None
        delay = self._leak.delay_ms * RATE // 1000
        first, last = max(0, start - delay), max(0, self.position - delay)
        heard = pcm16_to_samples(self._played[2 * first : 2 * last]) * np.float32(10 ** (self._leak.gain_db / 20))
        return np.concatenate([np.zeros(self.position - start - len(heard), np.float32), heard])

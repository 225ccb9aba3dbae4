"""The user's side of a scene as sound: its steps, each at its time, on the tone of a quiet room."""

from __future__ import annotations

import numpy as np

from speech_to_speech.bench.scenes import ROOM_LEVEL, Scene
from speech_to_speech.client.audio_device import RATE
from speech_to_speech.stage_types import Samples


class UserSide:
    """Positions are samples at 24 kHz from the start of the recording."""

    def __init__(self, scene: Scene) -> None:
        self._steps = scene.steps
        self._room = np.random.default_rng(scene.seed).normal(0, ROOM_LEVEL, RATE).astype(np.float32)
        self._starts: list[int] = []
        self._place_following()

    @property
    def starts(self) -> tuple[int | None, ...]:
        """Where each step starts; None while that is open."""
        return (*self._starts, *[None] * (len(self._steps) - len(self._starts)))

    @property
    def awaits_assistant(self) -> bool:
        """True while the next step waits for the assistant's voice."""
        return len(self._starts) < len(self._steps)

    @property
    def end(self) -> int:
        """Where the last of the steps placed so far ends."""
        return max(self._end(index) for index in range(len(self._starts)))

    @property
    def last_end(self) -> int:
        """Where the newest of the steps placed so far ends: from there on the next one waits."""
        return self._end(len(self._starts) - 1)

    def assistant_heard(self, position: int) -> None:
        """The assistant's voice is audible at `position`; starts what waits for it, and what follows that."""
        if self.awaits_assistant and position >= self.last_end:
            self._starts.append(position + _samples(self._steps[len(self._starts)].offset_ms))
            self._place_following()

    def samples(self, start: int, end: int) -> Samples:
        """What the user's side sounds like in `[start, end)`."""
        mixed = self._room[np.arange(start, end) % RATE]
        for index, begin in enumerate(self._starts):
            first, last = max(start, begin), min(end, self._end(index))
            if first < last:
                mixed[first - start : last - start] += self._steps[index].samples[first - begin : last - begin]
        return mixed

    def _place_following(self) -> None:
        for step in self._steps[len(self._starts) :]:
            if step.after == "assistant_start":
                return
            anchor = 0 if step.after == "start" else self.last_end
            self._starts.append(anchor + _samples(step.offset_ms))

    def _end(self, index: int) -> int:
        return self._starts[index] + len(self._steps[index].samples)


def _samples(milliseconds: float) -> int:
    return round(milliseconds * RATE / 1000)

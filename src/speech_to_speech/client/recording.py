"""The assistant's side of the conversation, as a listener hears it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from speech_to_speech.audio.pcm import pcm16_to_samples
from speech_to_speech.audio.wav import write_wav
from speech_to_speech.client.audio_device import RATE


class Recording:
    """Collects what was played. Silence is kept where a reply stalls, and left out between replies."""

    def __init__(self) -> None:
        self._pcm = bytearray()
        self._stall = bytearray()

    @property
    def duration_s(self) -> float:
        """Seconds recorded."""
        return len(self._pcm) / 2 / RATE

    def add(self, played: bytes, *, inside_reply: bool) -> None:
        """One block from the speaker. `inside_reply`: a reply has begun to sound, and there is more of it to come."""
        if any(played):
            self._pcm += self._stall + played
            self._stall.clear()
        elif inside_reply:
            self._stall += played
        else:
            self._stall.clear()

    def write(self, path: str | Path) -> None:
        """Write a WAV file, 24 kHz, 16 bit, mono. Raises `ConfigurationError` naming the file."""
        samples = pcm16_to_samples(self._pcm) if self._pcm else np.zeros(0, np.float32)
        write_wav(path, samples, RATE)

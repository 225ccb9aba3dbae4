"""Who speaks in the scenes: the package's own voice, variants of eSpeak NG, and recorded people."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from scene_sounds import RATE, WINDOW, levels
from speech_to_speech.arguments_classes.tts_arguments import TTSArguments
from speech_to_speech.audio.pcm import pcm16_to_samples
from speech_to_speech.audio.resampling import resample
from speech_to_speech.audio.wav import read_wav
from speech_to_speech.stage_types import Samples
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.TTS.espeak_text import for_espeak
from speech_to_speech.TTS.piper_handler import PiperTTS

BENCH_RECORDINGS = Path(__file__).parents[1] / "src" / "speech_to_speech" / "bench" / "recordings"
DEBIAN_FOLDERS = {
    "asterisk": "usr/share/asterisk/sounds/en_US_f_Allison",
    "sphinx": "usr/share/pocketsphinx/test/data",
}
RAW_RATE = 16_000
"""Sample rate of pocketsphinx' files without a header."""

PEAK = 0.6
"""Level the loudest sample of whatever is said is brought to, as a share of full scale."""

SPEECH_SHARE = 0.02
"""Windows below this share of the loudest one's level (-34 dB) at either end of a recording hold no speech."""


class Unavailable(Exception):
    """This machine cannot make a voice; the message says what is missing."""


class Voices:
    """Speaks the parts of a template. `debian`: where Debian's packages were unpacked, or None."""

    def __init__(self, table: Mapping[str, Mapping[str, Any]], debian: Path | None) -> None:
        self._table = table
        self._debian = debian

    def say(self, voice: str, parts: Sequence[str]) -> list[Samples]:
        """Each part as sound of 24 kHz. Raises `Unavailable`."""
        spoken = [self._part(self._table[voice], part) for part in parts]
        gain = PEAK / max(float(np.abs(samples).max()) for samples in spoken)
        return [samples * np.float32(gain) for samples in spoken]

    def _part(self, voice: Mapping[str, Any], part: str) -> Samples:
        if voice["engine"] == "piper":
            return _trimmed(self._piper(part))
        if voice["engine"] == "espeak":
            return _trimmed(_espeak(voice["variant"], part))
        return np.concatenate([_trimmed(self._recording(reference)) for reference in part.split()])

    @cached_property
    def _synthesizer(self) -> TextToSpeech:
        return PiperTTS.load(TTSArguments(), threads=2)

    def _piper(self, text: str) -> Samples:
        made = self._synthesizer.synthesize(text, voice="", speed=1.0, is_cancelled=lambda: False)
        return resample(np.concatenate(list(made)), self._synthesizer.capabilities.sample_rate, RATE)

    def _recording(self, reference: str) -> Samples:
        source, _, name = reference.partition(":")
        if source == "bench":
            return read_wav(BENCH_RECORDINGS / f"{name}.wav", RATE)
        path = Path(name if "." in name else f"{name}.wav")
        if self._debian is None:
            raise Unavailable(f"{path.name} is in Debian's packages: see --debian")
        path = self._debian / DEBIAN_FOLDERS[source] / path
        if not path.exists():
            raise Unavailable(f"{path} is missing: see --debian")
        if path.suffix != ".raw":
            return read_wav(path, RATE)
        return resample(pcm16_to_samples(path.read_bytes()), RAW_RATE, RATE)


def _espeak(variant: str, text: str) -> Samples:
    program = shutil.which("espeak-ng")
    if program is None:
        raise Unavailable("espeak-ng is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        language = variant.partition("+")[0]
        subprocess.run([program, "-v", variant, "-w", path, for_espeak(text, language)], check=True)
        return read_wav(path, RATE)


def _trimmed(speech: Samples) -> Samples:
    """Without the silence at either end, except 20 ms of it."""
    loud = np.flatnonzero(levels(speech) > SPEECH_SHARE * levels(speech).max())
    return speech[max(0, (loud[0] - 1) * WINDOW) : (loud[-1] + 2) * WINDOW]

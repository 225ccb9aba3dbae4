"""WAV files: PCM of any usual width in, 16 bit out."""

from __future__ import annotations

import struct
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from speech_to_speech.audio.pcm import samples_to_pcm16
from speech_to_speech.audio.resampling import resample
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.stage_types import Samples

_PCM, _FLOAT, _EXTENSIBLE = 0x0001, 0x0003, 0xFFFE
"""Format tags (Microsoft, mmreg.h)."""


def load_wav(path: str | Path) -> tuple[Samples, int]:
    """Read a WAV file of 8, 16, 24 or 32 bit integers or 32 bit floats; channels are averaged.

    Returns the samples and their rate in Hz. Raises `ConfigurationError` naming the file.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    try:
        return _decode(data)
    except _NotReadable as error:
        raise ConfigurationError(f"{path}: {error}") from error


def read_wav(path: str | Path, rate: int) -> Samples:
    """Read a WAV file and convert it to `rate` Hz."""
    samples, source_rate = load_wav(path)
    return resample(samples, source_rate, rate)


def write_wav(path: str | Path, samples: Samples, rate: int) -> None:
    """Write 16 bit: mono `[samples]`, or `[samples, channels]`.

    Raises `ConfigurationError` naming the file when it cannot be written.
    """
    try:
        with Path(path).open("wb") as file, wave.open(file, "wb") as writer:
            writer.setnchannels(1 if samples.ndim == 1 else samples.shape[1])
            writer.setsampwidth(2)
            writer.setframerate(rate)
            writer.writeframes(samples_to_pcm16(samples))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error


class _NotReadable(Exception):
    """Why the bytes are not a WAV file this module reads."""


def _chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """The RIFF chunks. A size beyond the file's end (a recorder that never came back to fill it in) is cut to it."""
    view = memoryview(data)
    position = 12
    while position + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, position)
        yield name, view[position + 8 : position + 8 + size]
        position += 8 + size + size % 2


def _decode(data: bytes) -> tuple[Samples, int]:
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _NotReadable("not a WAV file (no RIFF/WAVE header)")
    layout: memoryview | None = None
    for name, body in _chunks(data):
        if name == b"fmt ":
            layout = body
        elif name == b"data":
            if layout is None:
                raise _NotReadable("broken WAV file: audio before its format")
            return _decode_audio(layout, body)
    raise _NotReadable("broken WAV file: no audio in it")


def _decode_audio(layout: memoryview, body: memoryview) -> tuple[Samples, int]:
    if len(layout) < 16:
        raise _NotReadable("broken WAV file: its format chunk is too short")
    tag, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", layout)
    if tag == _EXTENSIBLE and len(layout) >= 26:
        (tag,) = struct.unpack_from("<H", layout, 24)  # the first two bytes of the sub-format GUID
    if channels == 0 or rate == 0:
        raise _NotReadable(f"broken WAV file: {channels} channels at {rate} Hz")
    if (tag, bits) not in _READERS:
        kind = {_PCM: "integer PCM", _FLOAT: "float PCM"}.get(tag, f"format 0x{tag:04x}")
        raise _NotReadable(f"{bits} bit {kind} is not supported; convert it to 16 bit PCM WAV")
    frame_bytes = channels * bits // 8
    whole = body[: len(body) // frame_bytes * frame_bytes]
    samples = _READERS[tag, bits](whole).reshape(-1, channels)
    mono = samples[:, 0] if channels == 1 else samples.mean(axis=1, dtype=np.float32)
    return np.ascontiguousarray(mono, dtype=np.float32), rate


def _read_int8(body: memoryview) -> Samples:
    """8 bit WAV is unsigned with its zero at 128."""
    return (np.frombuffer(body, np.uint8).astype(np.float32) - 128.0) / 128.0


def _read_int16(body: memoryview) -> Samples:
    return np.frombuffer(body, "<i2").astype(np.float32) / 2.0**15


def _read_int24(body: memoryview) -> Samples:
    """Three bytes become the upper ones of a 32 bit integer."""
    padded = np.zeros((len(body) // 3, 4), np.uint8)
    padded[:, 1:] = np.frombuffer(body, np.uint8).reshape(-1, 3)
    return _read_int32(memoryview(padded.tobytes()))


def _read_int32(body: memoryview) -> Samples:
    return (np.frombuffer(body, "<i4") / 2.0**31).astype(np.float32)


def _read_float32(body: memoryview) -> Samples:
    """Values outside [-1, 1] are clipped, NaN is silence."""
    samples: Samples = np.clip(np.nan_to_num(np.frombuffer(body, "<f4"), nan=0.0), -1.0, 1.0).astype(np.float32)
    return samples


_READERS = {
    (_PCM, 8): _read_int8,
    (_PCM, 16): _read_int16,
    (_PCM, 24): _read_int24,
    (_PCM, 32): _read_int32,
    (_FLOAT, 32): _read_float32,
}

"""16-bit PCM bytes, as they travel on the wire and in files, to and from the float samples of the stages."""

from __future__ import annotations

import numpy as np

from speech_to_speech.errors import InvalidRequestError
from speech_to_speech.stage_types import Samples

_FULL_SCALE = 32_768.0
"""Both directions use 2**15, so that int16 → float → int16 is exact; +1.0 itself clips to 32767."""


def pcm16_to_samples(data: bytes | bytearray | memoryview, *, param: str | None = None) -> Samples:
    """Decode signed 16-bit little-endian mono PCM.

    Raises `InvalidRequestError` when the byte count is odd; `param` is the client's field to blame.
    """
    size = memoryview(data).nbytes
    if size % 2:
        raise InvalidRequestError(f"16-bit PCM needs an even number of bytes, got {size}", param=param)
    samples = np.frombuffer(data, dtype="<i2").astype(np.float32)
    samples /= _FULL_SCALE
    return samples


def samples_to_pcm16(samples: Samples) -> bytes:
    """Encode as signed 16-bit little-endian mono PCM: rounded to nearest, clipped to the range, NaN as silence."""
    scaled = samples * np.float32(_FULL_SCALE)
    np.clip(scaled, -_FULL_SCALE, _FULL_SCALE - 1.0, out=scaled)
    np.rint(scaled, out=scaled)
    scaled[np.isnan(scaled)] = 0.0
    encoded: bytes = scaled.astype("<i2").tobytes()
    return encoded

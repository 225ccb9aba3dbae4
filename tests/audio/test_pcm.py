from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_to_speech.audio.pcm import pcm16_to_samples, samples_to_pcm16
from speech_to_speech.errors import InvalidRequestError


@given(st.lists(st.integers(-32768, 32767)))
@settings(deadline=None)
def test_every_16_bit_value_survives_the_round_trip(values: list[int]) -> None:
    data = struct.pack(f"<{len(values)}h", *values)
    assert samples_to_pcm16(pcm16_to_samples(data)) == data


def test_samples_are_fractions_of_full_scale() -> None:
    samples = pcm16_to_samples(struct.pack("<3h", 16384, -32768, 0))
    assert samples.dtype == np.float32
    assert samples.tolist() == [0.5, -1.0, 0.0]


def test_encoding_rounds_to_the_nearest_value() -> None:
    data = samples_to_pcm16(np.array([1.4 / 32768, 1.6 / 32768, -1.6 / 32768], np.float32))
    assert struct.unpack("<3h", data) == (1, 2, -2)


def test_encoding_clips_and_silences_what_is_not_a_number() -> None:
    data = samples_to_pcm16(np.array([1.0, 2.0, -3.0, np.inf, np.nan], np.float32))
    assert struct.unpack("<5h", data) == (32767, 32767, -32768, 32767, 0)


def test_an_odd_number_of_bytes_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequestError, match="even number of bytes, got 3") as refusal:
        pcm16_to_samples(b"\x00\x01\x02", param="audio")
    assert refusal.value.param == "audio"


def test_a_memoryview_is_decoded_like_bytes() -> None:
    assert pcm16_to_samples(memoryview(b"\x00\x40")).tolist() == [0.5]

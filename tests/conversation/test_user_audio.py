"""The session's recording: what is kept, and that what was handed out stays as it was."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from speech_to_speech.conversation.user_audio import UserAudio
from speech_to_speech.stage_types import VAD_FRAME_SAMPLES, Samples


def ramp(start: int, end: int) -> Samples:
    """Every sample is its own position."""
    return np.arange(start, end, dtype=np.float32)


@given(lengths=st.lists(st.integers(0, 3_000), max_size=40), forget=st.lists(st.integers(0, 60_000), max_size=40))
def test_positions_hold_what_was_appended_there(lengths: list[int], forget: list[int]) -> None:
    audio = UserAudio()
    frames: list[tuple[int, Samples]] = []
    end = dropped = 0
    for index, length in enumerate(lengths):
        frames += audio.append(bytes(3 * length), ramp(end, end + length))
        end += length
        if index < len(forget):
            audio.forget_before(forget[index])
            dropped = max(dropped, min(forget[index], len(frames) * VAD_FRAME_SAMPLES))
        assert (audio.start, audio.end) == (dropped, end)
        np.testing.assert_array_equal(audio.samples(0, end + 5), ramp(dropped, end))
    assert [number for number, _ in frames] == list(range(end // VAD_FRAME_SAMPLES))
    for number, frame in frames:  # looked at last: nothing may have been written over them
        np.testing.assert_array_equal(frame, ramp(number * VAD_FRAME_SAMPLES, (number + 1) * VAD_FRAME_SAMPLES))


def test_the_memory_of_a_long_turn_is_given_back() -> None:
    audio = UserAudio()
    for second in range(60):
        audio.append(b"", ramp(second * 16_000, (second + 1) * 16_000))
    audio.forget_before(59 * 16_000)
    kept = audio.samples(59 * 16_000, 60 * 16_000)
    assert kept.base is not None and len(kept.base) < 4 * 16_000
    np.testing.assert_array_equal(kept, ramp(59 * 16_000, 60 * 16_000))

from __future__ import annotations

import pytest

from speech_to_speech.conversation.turn_detection import SemanticVAD, required_silence_ms, with_words
from speech_to_speech.conversation.voice_activity import VoiceActivity, VoiceChange
from speech_to_speech.stage_types import VAD_FRAME_SAMPLES


def _hear(frames: list[tuple[float, float]]) -> tuple[VoiceActivity, list[VoiceChange | None]]:
    """Probability and level of each frame."""
    voice = VoiceActivity()
    return voice, [voice.frame(i, probability, 0.5, level) for i, (probability, level) in enumerate(frames)]


def test_what_a_detector_calls_voiced_behind_the_last_sound_is_quiet() -> None:
    loud, soft, nothing = (0.9, 0.2), (0.9, 0.003), (0.8, 0.001)
    voice, changes = _hear([loud, loud, soft, nothing, nothing])

    assert VoiceChange.PAUSE not in changes
    assert voice.is_quiet
    assert voice.audible_end == 3 * VAD_FRAME_SAMPLES
    assert voice.voiced_end == 5 * VAD_FRAME_SAMPLES


def test_sound_after_a_quiet_frame_is_heard() -> None:
    voice, _ = _hear([(0.9, 0.2), (0.9, 0.2), (0.9, 0.001), (0.9, 0.1)])

    assert not voice.is_quiet
    assert voice.audible_end == 4 * VAD_FRAME_SAMPLES


def test_in_noise_the_detector_alone_decides() -> None:
    voice, changes = _hear([(0.9, 0.2), (0.9, 0.2), (0.8, 0.01), (0.1, 0.01)])

    assert changes[-1] is VoiceChange.PAUSE
    assert voice.audible_end == voice.voiced_end == 3 * VAD_FRAME_SAMPLES


def test_how_loud_the_last_speaker_was_does_not_matter_to_the_next() -> None:
    voice, _ = _hear([(0.9, 0.9), (0.9, 0.9)])
    voice.end()
    for index in range(2, 6):
        voice.frame(index, 0.9, 0.5, 0.005)

    assert voice.audible_end == 6 * VAD_FRAME_SAMPLES


@pytest.mark.parametrize(
    ("p", "text", "expected"),
    [
        (0.05, "How many legs does a spider have?", 0.75),
        (0.9, "How many legs does a spider have?", 0.9),
        (0.05, "I would like to", 0.05),
        (0.05, "I would like to go there.", 0.05),
        (0.05, "What?", 0.05),
        (0.05, "", 0.05),
        (None, "How many legs does a spider have?", None),
    ],
)
def test_a_question_is_complete_whatever_it_sounds_like(p: float | None, text: str, expected: float | None) -> None:
    assert with_words(p, text) == expected


def test_the_wait_falls_with_the_probability() -> None:
    waits = [required_silence_ms(SemanticVAD(), p / 20) for p in range(21)]
    assert waits == sorted(waits, reverse=True)
    assert required_silence_ms(SemanticVAD(), None) == 4000

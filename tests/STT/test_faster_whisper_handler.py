"""The recogniser on real models: what it understands, what it takes back (nothing), and when it stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scene_sounds import coughs
from sounds import hum, music, noise
from speech_to_speech.arguments_classes import STTArguments
from speech_to_speech.audio.resampling import resample
from speech_to_speech.audio.wav import read_wav
from speech_to_speech.errors import Cancelled, ModelLoadError
from speech_to_speech.stage_types import RECOGNITION_RATE, Samples, Transcript
from speech_to_speech.STT.base import SpeechToText
from speech_to_speech.STT.faster_whisper_handler import FasterWhisper
from words import words

SENTENCE = "Could you please tell me what the weather is going to be like in New York today and tomorrow?"
Say = Callable[[str], Samples]
RECORDINGS = Path(__file__).parents[2] / "src" / "speech_to_speech" / "bench" / "recordings"


def _never() -> bool:
    return False


def _final(recogniser: SpeechToText, samples: Samples, **options: str) -> Transcript:
    stream = recogniser.open(**options)
    stream.accept(samples)
    return stream.decode(final=True, is_cancelled=_never)


@pytest.mark.parametrize("model", ["base", "tiny.en"])
def test_a_sentence_is_understood(model: str, base: FasterWhisper, tiny: FasterWhisper, say: Say) -> None:
    transcript = _final(base if model == "base" else tiny, say(SENTENCE))

    assert words(transcript.text) == words(SENTENCE)
    assert transcript.final and transcript.stable == transcript.text


@pytest.mark.parametrize(
    ("recording", "said"),
    [
        ("cmu_go_forward", "go forward 10 meters"),
        ("cmu_go_somewhere", "go somewhere and do something"),
        ("librivox_0930", "he might even have been made amiable himself"),
        ("librivox_0890", "unless to be rather cold hearted and rather selfish is to be ill disposed"),
    ],
)
def test_recorded_people_are_understood_in_a_short_context(base: FasterWhisper, recording: str, said: str) -> None:
    transcript = _final(base, read_wav(RECORDINGS / f"{recording}.wav", RECOGNITION_RATE))

    assert words(transcript.text) == words(said)


@pytest.mark.parametrize("word", ["Yes.", "No.", "Stop!", "Hello."])
def test_a_single_word_is_not_taken_for_noise(base: FasterWhisper, say: Say, word: str) -> None:
    """Which word it was is another question: the synthesised "Stop!" may well sound like "Star"."""
    assert len(words(_final(base, say(word)).text)) == 1


@pytest.mark.parametrize("sound", [coughs, noise, hum, music], ids=lambda sound: sound.__name__)
@pytest.mark.parametrize("level", [1.0, 0.1])
def test_sounds_that_say_nothing_have_no_transcript(base: FasterWhisper, sound: object, level: float) -> None:
    assert callable(sound)
    assert _final(base, level * resample(sound(), 24_000, RECOGNITION_RATE)).text == ""


def test_silence_and_next_to_nothing_have_no_transcript(base: FasterWhisper) -> None:
    assert _final(base, np.zeros(2 * RECOGNITION_RATE, np.float32)).text == ""
    assert _final(base, np.zeros(10, np.float32)).text == ""
    assert _final(base, np.zeros(0, np.float32)).text == ""


def _partial_then_final(recogniser: FasterWhisper, heard: Samples, rest: Samples) -> tuple[Transcript, Transcript]:
    stream = recogniser.open(language="en")
    stream.accept(heard)
    partial = stream.decode(final=False, is_cancelled=_never)
    stream.accept(rest)
    return partial, stream.decode(final=True, is_cancelled=_never)


def test_a_partial_that_heard_all_is_confirmed_without_another_decode(
    base: FasterWhisper, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    speech = say("What is the capital of France?")
    decodes = []
    decode = base._decoder.decode
    monkeypatch.setattr(base._decoder, "decode", lambda *a, **k: decodes.append(a) or decode(*a, **k))

    partial, final = _partial_then_final(base, speech, np.zeros(RECOGNITION_RATE // 5, np.float32))

    assert len(decodes) == 1
    assert final.final and final.text == partial.text
    assert words(final.text) == words("What is the capital of France?")


@pytest.mark.parametrize("text", ["I like it. No, I don't.", "Is it raining? Yes or no?"])
def test_words_after_a_partial_that_reads_finished_are_not_lost(base: FasterWhisper, say: Say, text: str) -> None:
    speech = say(text)
    for cut in range(RECOGNITION_RATE // 2, len(speech), RECOGNITION_RATE // 5):
        end = cut + RECOGNITION_RATE // 4
        _, final = _partial_then_final(base, speech[:cut], speech[cut:end])
        assert len(words(final.text)) == len(words(_final(base, speech[:end], language="en").text))


def test_stable_words_are_never_taken_back(base: FasterWhisper, say: Say) -> None:
    speech = say(SENTENCE)
    stream = base.open()
    stable = ""
    for start in range(0, len(speech), RECOGNITION_RATE * 7 // 10):
        stream.accept(speech[start : start + RECOGNITION_RATE * 7 // 10])
        partial = stream.decode(final=False, is_cancelled=_never)
        assert partial.stable.startswith(stable)
        assert partial.text.startswith(partial.stable)
        stable = partial.stable
    final = stream.decode(final=True, is_cancelled=_never)

    assert len(stable.split()) >= 5
    assert final.text.startswith(stable)
    assert words(final.text) == words(SENTENCE)


def test_a_user_who_goes_on_after_a_final_decode_is_heard_whole(base: FasterWhisper, say: Say) -> None:
    stream = base.open()
    stream.accept(say("I would like a table"))
    stream.decode(final=True, is_cancelled=_never)
    stream.accept(np.zeros(RECOGNITION_RATE // 3, np.float32))
    stream.accept(say("for two people."))
    heard = words(stream.decode(final=True, is_cancelled=_never).text)

    assert heard[:5] == words("I would like a table") and heard[-1] == "people"


def test_a_final_decode_without_new_audio_is_the_last_one(base: FasterWhisper, say: Say) -> None:
    stream = base.open()
    stream.accept(say("Hello."))
    first = stream.decode(final=True, is_cancelled=_never)

    def no_model_may_run() -> bool:
        raise AssertionError("the model was asked again")

    assert stream.decode(final=True, is_cancelled=no_model_may_run) is first


def test_a_long_turn_is_decoded_window_by_window(tiny: FasterWhisper, say: Say) -> None:
    numbers = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    pause = np.zeros(RECOGNITION_RATE // 2, np.float32)
    sentences = [say(f"This is sentence number {number}, my friend.") for number in numbers]
    speech = np.concatenate([part for sentence in sentences * 2 for part in (sentence, pause)])
    assert len(speech) > 35 * RECOGNITION_RATE
    heard = words(_final(tiny, speech).text)

    assert heard.count("sentence") == 16
    assert heard.count("friend") == 16


def test_a_long_turn_with_partials_takes_nothing_back_and_says_nothing_twice(tiny: FasterWhisper, say: Say) -> None:
    numbers = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    sentences = [say(f"This is sentence number {number}, my friend.") for number in numbers]
    speech = np.concatenate(sentences * 2)
    stream = tiny.open()
    stable = ""
    for start in range(0, len(speech), 3 * RECOGNITION_RATE):
        stream.accept(speech[start : start + 3 * RECOGNITION_RATE])
        partial = stream.decode(final=False, is_cancelled=_never)
        assert partial.stable.startswith(stable)
        stable = partial.stable
    final = stream.decode(final=True, is_cancelled=_never)

    assert final.text.startswith(stable)
    assert 15 <= words(final.text).count("sentence") <= 17


@pytest.mark.parametrize("polls", [1, 2, 3])
def test_a_cancel_is_seen_between_the_steps(base: FasterWhisper, say: Say, polls: int) -> None:
    asked = 0

    def is_cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked >= polls

    stream = base.open()
    stream.accept(say(SENTENCE))
    with pytest.raises(Cancelled):
        stream.decode(final=False, is_cancelled=is_cancelled)
    assert asked == polls  # nothing ran after the cancel was seen
    assert words(stream.decode(final=True, is_cancelled=_never).text) == words(SENTENCE)


def test_a_greedy_decode_looks_for_a_cancel_every_few_tokens(base: FasterWhisper, say: Say) -> None:
    asked = 0

    def is_cancelled() -> bool:
        nonlocal asked
        asked += 1
        return False

    stream = base.open()
    stream.accept(np.concatenate([say(SENTENCE)] * 3))
    stream.decode(final=False, is_cancelled=is_cancelled)

    assert asked >= 4  # before and after encoding, and at least two steps of 48 tokens for 57 words


def test_the_language_is_detected_or_given(base: FasterWhisper, say: Say) -> None:
    assert _final(base, say(SENTENCE)).language == "en"
    assert _final(base, say(SENTENCE), language="de").language == "de"
    assert "de" in base.capabilities.languages


def test_an_english_model_knows_english_only(tiny: FasterWhisper) -> None:
    assert tiny.capabilities.languages == ("en",)
    with pytest.raises(ModelLoadError, match="--stt_language fr"):
        FasterWhisper.load(STTArguments(model="tiny.en", language="fr"), 2)


def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"nonsense")
    with pytest.raises(ModelLoadError, match=str(tmp_path)):
        FasterWhisper.load(STTArguments(model=str(tmp_path)), 1)

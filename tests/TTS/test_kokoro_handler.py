"""Kokoro: what is asked of a stand-in for the model; then the real one, judged by a recogniser (acceptance)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faster_whisper import WhisperModel

from speech_to_speech import models
from speech_to_speech.arguments_classes.tts_arguments import TTSArguments
from speech_to_speech.audio.resampling import resample
from speech_to_speech.errors import Cancelled, ConfigurationError, MissingDependencyError, ModelLoadError, StageError
from speech_to_speech.models import assets
from speech_to_speech.models.assets import KOKORO_VOICES
from speech_to_speech.stage_types import Samples
from speech_to_speech.TTS import kokoro_handler
from speech_to_speech.TTS.kokoro_handler import KokoroTTS
from speech_to_speech.TTS.piper_handler import PiperTTS

ALPHABET = {
    phoneme: number for number, phoneme in enumerate(" ,;:.!?ˈˌːᵊᵻAIOQTWYabdfhijklmnpstuvwzæðŋɑɒɔəɛɜɡɪɹʃʊʌʒʤʧθ", 1)
}


class StandIn:
    """In the place of onnxruntime's session: half a second of a tone for whatever is asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def run(self, outputs: list[str], inputs: dict[str, Any]) -> list[Samples]:
        assert outputs == ["audio"]
        self.asked.append(inputs)
        return [np.sin(np.arange(12_000) / 10, dtype=np.float32)]


@pytest.fixture
def stand_in() -> StandIn:
    return StandIn()


@pytest.fixture
def handler(stand_in: StandIn) -> KokoroTTS:
    """Two voices; in the rows of the first is their own number, in those of the second its negative."""
    rows = np.repeat(np.arange(510, dtype=np.float32)[:, np.newaxis], 256, axis=1)
    return KokoroTTS(stand_in, ALPHABET, {"af_one": rows, "bm_two": -rows}, speed=1.5)


def parts(handler: KokoroTTS, text: str, *, voice: str = "", speed: float = 1.0) -> list[Samples]:
    return list(handler.synthesize(text, voice=voice, speed=speed, is_cancelled=lambda: False))


def say(handler: KokoroTTS, text: str, *, voice: str = "", speed: float = 1.0) -> Samples:
    return np.concatenate([np.zeros(0, np.float32), *parts(handler, text, voice=voice, speed=speed)])


def read(inputs: dict[str, Any]) -> str:
    """The phonemes behind the tokens, without the two at the edges."""
    phonemes = {number: phoneme for phoneme, number in ALPHABET.items()}
    return "".join(phonemes[token] for token in inputs["tokens"][0][1:-1])


# --- what is asked of the model -----------------------------------------------------------------------------------


def test_the_model_gets_phonemes_between_edges_with_the_style_for_their_number(
    handler: KokoroTTS, stand_in: StandIn
) -> None:
    say(handler, "A boy.", speed=2.0)
    (inputs,) = stand_in.asked
    assert read(inputs) == "ə bˈY."
    assert inputs["tokens"].dtype == np.int64 and inputs["tokens"][0, [0, -1]].tolist() == [0, 0]
    assert inputs["style"].shape == (1, 256) and inputs["style"].dtype == np.float32
    assert (inputs["style"] == len("ə bˈY.") - 1).all()
    assert inputs["speed"].tolist() == [1.5 * 2.0]


def test_a_voice_has_its_own_style_and_its_own_accent(handler: KokoroTTS, stand_in: StandIn) -> None:
    say(handler, "Hair", voice="bm_two")
    (inputs,) = stand_in.asked
    assert read(inputs) == "hˈɛː" and (inputs["style"] < 0).all()


def test_every_sentence_is_spoken_by_itself(handler: KokoroTTS, stand_in: StandIn) -> None:
    assert len(parts(handler, "One sentence. And another!")) == len(stand_in.asked) == 2


def test_a_long_sentence_is_cut_at_its_commas_and_none_of_it_is_lost(handler: KokoroTTS, stand_in: StandIn) -> None:
    clause = "the quick brown fox jumps over the lazy dog"
    say(handler, ", ".join([clause] * 20) + ".")
    asked = [read(inputs) for inputs in stand_in.asked]
    assert len(asked) > 3 and all(len(phonemes) <= 200 for phonemes in asked)
    assert all(phonemes.endswith(",") for phonemes in asked[:-1])
    say(handler, clause)
    assert " ".join(asked).replace(",", "").rstrip(".").count(read(stand_in.asked[-1])) == 20


@pytest.mark.parametrize("text", ["word " * 150, "a" * 300])
def test_text_without_punctuation_is_cut_too(handler: KokoroTTS, stand_in: StandIn, text: str) -> None:
    say(handler, text)
    assert all(1 <= len(read(inputs)) <= 200 for inputs in stand_in.asked)


@pytest.mark.parametrize("length", [201, 399, 1000])
def test_parts_of_what_has_no_boundary_add_up(length: int) -> None:
    assert "".join(kokoro_handler._split("m" * length)) == "m" * length


@pytest.mark.parametrize("text", ["", "  ", "...", "!!", "*", "😀", "你好", "\x00"])
def test_text_that_cannot_be_pronounced_is_silence(handler: KokoroTTS, stand_in: StandIn, text: str) -> None:
    assert len(say(handler, text)) == 0 and stand_in.asked == []


def test_an_unknown_voice_is_refused_with_the_known_ones(handler: KokoroTTS) -> None:
    with pytest.raises(StageError, match="unknown voice 'alloy'; this model has af_one, bm_two"):
        say(handler, "Hello.", voice="alloy")


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_an_impossible_speed_is_refused(handler: KokoroTTS, speed: float) -> None:
    with pytest.raises(StageError, match="speed"):
        say(handler, "Hello.", speed=speed)


def test_cancelling_stops_between_two_sentences(handler: KokoroTTS, stand_in: StandIn) -> None:
    cancelled = False
    made = handler.synthesize("One. Two. Three.", voice="", speed=1.0, is_cancelled=lambda: cancelled)
    next(made)
    cancelled = True
    with pytest.raises(Cancelled):
        next(made)
    assert len(stand_in.asked) <= 2


def test_what_the_model_raises_is_a_stage_error(handler: KokoroTTS, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler._session, "run", lambda *_: 1 / 0)
    with pytest.raises(StageError, match="tts: Kokoro failed: division by zero"):
        say(handler, "Hello.")


# --- options and files --------------------------------------------------------------------------------------------


def test_piper_s_default_voice_stands_for_kokoro_s_own() -> None:
    assert kokoro_handler._default_voice(TTSArguments()) == "af_heart"
    assert kokoro_handler._default_voice(TTSArguments(voice="bm_george")) == "bm_george"


def test_an_unknown_voice_on_the_command_line_is_refused_before_anything_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "resolve", lambda *_: pytest.fail("nothing should be downloaded"))
    with pytest.raises(ConfigurationError, match="--tts_voice en_GB-alba-medium: Kokoro has af_heart, af_alloy, "):
        KokoroTTS.load(TTSArguments(voice="en_GB-alba-medium"), threads=1)
    with pytest.raises(ConfigurationError, match="use --tts kokoro"):
        PiperTTS.load(TTSArguments(voice="kokoro"), threads=1)


def test_without_espeak_the_line_that_installs_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "piper", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'speech-to-speech-server\[kokoro\]'"):
        KokoroTTS.load(TTSArguments(), threads=1)


def test_a_damaged_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    (tmp_path / "config.json").write_text('{"vocab": {}}')
    for voice in KOKORO_VOICES:
        np.zeros((510, 256), "<f4").tofile(tmp_path / f"{voice}.bin")
    monkeypatch.setattr(models, "resolve", lambda *_: tmp_path / "model.onnx")
    with pytest.raises(ModelLoadError, match=f"cannot load Kokoro from {re.escape(str(tmp_path))}"):
        KokoroTTS.load(TTSArguments(), threads=1)


def test_the_table_has_the_model_its_vocabulary_and_28_english_voices() -> None:
    asset = assets.find("tts", "kokoro")
    assert asset is not None and asset.licence == "Apache-2.0" and not asset.default
    model, config, *voices = asset.files
    assert (model.name, model.size) == ("kokoro-v1.0.int8.onnx", 92_361_271)
    assert config.name == "config.json"
    assert [f"{voice}.bin" for voice in KokoroTTS.voice_names()] == [file.name for file in voices]
    assert {file.size for file in voices} == {510 * 256 * 4}
    assert len(voices) == len({file.sha256 for file in voices}) == 28
    assert {file.name[:3] for file in voices} == {"af_", "am_", "bf_", "bm_"}


# --- the real model -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kokoro() -> Iterator[KokoroTTS]:
    yield KokoroTTS.load(TTSArguments(), threads=2)


def words_heard(listener: WhisperModel, samples: Samples) -> list[str]:
    segments, _ = listener.transcribe(resample(samples, 24_000, 16_000), language="en", beam_size=5)
    return re.findall(r"[a-z0-9']+", "".join(segment.text for segment in segments).lower().replace(",", ""))


def errors(heard: list[str], said: list[str]) -> int:
    """Insertions, deletions and substitutions (Levenshtein) from `said` to `heard`."""
    row = list(range(len(said) + 1))
    for i, word in enumerate(heard, 1):
        previous, row[0] = row[0], i
        for j, wanted in enumerate(said, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (word != wanted))
    return row[-1]


@pytest.mark.acceptance
@pytest.mark.parametrize("voice", ["", "bm_george"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Dr. Smith paid $5 on May 3rd.", "dr smith paid 5 on may 3rd"),
        (
            "Photosynthesis is the process by which green plants and some other organisms make food from sunlight.",
            "photosynthesis is the process by which green plants and some other organisms make food from sunlight",
        ),
        (
            "The moon is about 384,400 km away, and light takes 1.3 seconds to get there.",
            "the moon is about 384400 kilometers away and light takes 1 3 seconds to get there",
        ),
    ],
)
def test_a_listener_understands(kokoro: KokoroTTS, listener: WhisperModel, text: str, words: str, voice: str) -> None:
    heard = words_heard(listener, say(kokoro, text, voice=voice))
    assert errors(heard, words.split()) <= 1, heard


@pytest.mark.acceptance
def test_a_long_text_is_spoken_to_its_end(kokoro: KokoroTTS, listener: WhisperModel) -> None:
    text = (
        "A long sentence, which goes on through many clauses, and names apples, pears, and plums, before it turns to "
        "knives, forks, and spoons, while the cook sings, the kettle boils, the cat sleeps, "
        "and the clock on the wall strikes seven, comes to its end at last with the word elephant."
    )
    made = parts(kokoro, text)
    heard = words_heard(listener, np.concatenate(made))
    assert len(made) > 1
    assert errors(heard, re.findall(r"\w+", text.lower())) <= 3, heard


@pytest.mark.acceptance
def test_voices_differ(kokoro: KokoroTTS) -> None:
    def pitch(voice: str) -> float:
        """Hz: the strongest period between 70 and 400 Hz."""
        samples = say(kokoro, "The capital of France is Paris.", voice=voice)
        spectrum = np.abs(np.fft.rfft(samples, 2 * len(samples))) ** 2
        correlation = np.fft.irfft(spectrum)
        shortest = 24_000 // 400
        return 24_000 / (shortest + int(np.argmax(correlation[shortest : 24_000 // 70])))

    assert pitch("am_michael") < 150 < pitch("af_heart")


@pytest.mark.acceptance
def test_speed_scales_the_tempo(kokoro: KokoroTTS) -> None:
    text = "This sentence is long enough to be measured with some precision."
    assert 0.4 < len(say(kokoro, text, speed=2.0)) / len(say(kokoro, text)) < 0.7


@pytest.mark.acceptance
def test_silence_around_the_speech_is_short(kokoro: KokoroTTS) -> None:
    samples = say(kokoro, "The capital of France is Paris.")
    loud = np.flatnonzero(np.abs(samples) > 10 ** (-50 / 20))
    assert loud[0] <= 0.051 * 24_000 and len(samples) - loud[-1] <= 0.251 * 24_000
    assert 0.1 < np.abs(samples).max() <= 1


@pytest.mark.acceptance
def test_the_model_knows_every_symbol_that_is_written(kokoro: KokoroTTS) -> None:
    config = json.loads((models.resolve("tts", "kokoro").parent / "config.json").read_text(encoding="utf-8"))
    assert set(ALPHABET) <= set(config["vocab"])
    text = "The boy's church, judge: measure bath nurse; hair near poor? Huge fire hour, little button! Go, uh, loch."
    for accent in ("en-us", "en-gb"):
        for sentence in kokoro._phonemes.sentences(text, accent):
            assert set(sentence) <= set(config["vocab"])


@pytest.mark.acceptance
def test_the_default_voice_is_the_chosen_one(kokoro: KokoroTTS) -> None:
    assert kokoro.capabilities.voices[0] == "af_heart"
    assert sorted(kokoro.capabilities.voices) == sorted(KOKORO_VOICES)
    assert (kokoro.capabilities.sample_rate, kokoro.capabilities.streams_text) == (24_000, False)
    chosen = KokoroTTS.load(TTSArguments(voice="bm_george"), threads=1)
    assert chosen.capabilities.voices[0] == "bm_george"
    assert sorted(chosen.capabilities.voices) == sorted(KOKORO_VOICES)

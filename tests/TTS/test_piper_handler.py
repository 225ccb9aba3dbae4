"""The real default voice, judged by a recogniser that knows nothing of it."""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from faster_whisper import WhisperModel

from speech_to_speech import models
from speech_to_speech.arguments_classes.tts_arguments import TTSArguments
from speech_to_speech.audio.resampling import resample
from speech_to_speech.errors import Cancelled, MissingDependencyError, ModelLoadError, StageError
from speech_to_speech.stage_types import Samples
from speech_to_speech.TTS.piper_handler import PiperTTS, _speakers
from speech_to_speech.TTS.speech_feed import SpeechFeed


def say(piper: PiperTTS, text: str, *, voice: str = "", speed: float = 1.0) -> Samples:
    made = piper.synthesize(text, voice=voice, speed=speed, is_cancelled=lambda: False)
    return np.concatenate([np.zeros(0, np.float32), *made])


def reply(piper: PiperTTS, text: str) -> Samples:
    """A whole reply, written a few characters at a time, the way it reaches the listener."""
    feed = SpeechFeed(piper)
    for start in range(0, len(text), 5):
        feed.add(text[start : start + 5], False)
    feed.add("", True)
    pieces = []
    while (clause := feed.next_clause()) is not None:
        pieces += feed.speak(clause, lambda: False)
    assert feed.done
    return np.concatenate([piece.samples for piece in pieces])


def words_heard(listener: WhisperModel, samples: Samples, rate: int) -> list[str]:
    segments, _ = listener.transcribe(resample(samples, rate, 16_000), language="en", beam_size=5)
    return re.findall(r"[a-z0-9']+", "".join(segment.text for segment in segments).lower().replace(",", ""))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Of course, Dr. Smith paid $5.50 for it in 1984, and he was happy.",
            "of course dr smith paid 5 50 for it in 1984 and he was happy",
        ),
        (
            "Photosynthesis is the process by which green plants and some other organisms make food from sunlight.",
            "photosynthesis is the process by which green plants and some other organisms make food from sunlight",
        ),
        (
            "Here are **three** animals:\n\n- a dog\n- two *cats*\n- one `horse`\n\n"
            "Read more in [the big book](https://example.com/x). 🐴",
            "here are three animals a dog two cats one horse read more in the big book",
        ),
    ],
)
def test_a_listener_understands_the_reply(piper: PiperTTS, listener: WhisperModel, text: str, words: str) -> None:
    heard = words_heard(listener, reply(piper, text), piper.capabilities.sample_rate)
    expected = words.split()
    missing = set(expected) - set(heard)
    assert len(missing) <= 2 and abs(len(heard) - len(expected)) <= 2, heard


def test_the_first_sound_comes_at_once(piper: PiperTTS) -> None:
    rate = piper.capabilities.sample_rate
    for text in ["The capital of France is Paris.", "Yes.", "How are you?"]:
        loud = np.flatnonzero(np.abs(reply(piper, text)) > 10 ** (-50 / 20))
        assert loud[0] / rate <= 0.030
        assert 0.3 < loud[-1] / rate < 3


def test_loudness_does_not_jump_between_clauses(piper: PiperTTS) -> None:
    def level(text: str) -> float:
        samples = say(piper, text)
        loud = samples[np.abs(samples) > 0.01]
        return float(20 * np.log10(np.sqrt(np.mean(loud**2))))

    levels = [level(text) for text in ["Sure!", "Oh no.", "The capital of France is Paris.", "What do you think?"]]
    assert max(levels) - min(levels) < 8  # dB
    assert -30 < np.mean(levels) < -12  # dBFS


def test_the_capabilities_are_those_of_the_voice_file(piper: PiperTTS) -> None:
    description = json.loads(Path(f"{models.resolve('tts', 'en_US-joe-medium')}.json").read_text())
    capabilities = piper.capabilities
    assert capabilities.sample_rate == description["audio"]["sample_rate"] == 22_050
    assert capabilities.voices == ("en_US-joe-medium",)
    assert not capabilities.streams_text


def test_speed_scales_the_tempo(piper: PiperTTS) -> None:
    text = "This sentence is long enough to be measured with some precision."
    # Not quite half: the model rounds each phoneme up to whole frames.
    assert 0.4 < len(say(piper, text, speed=2.0)) / len(say(piper, text)) < 0.75


@pytest.mark.parametrize("text", ["", "  ", "...", "!!", "*", "😀", "你好", "\x00"])
def test_text_that_cannot_be_pronounced_is_silence(piper: PiperTTS, text: str) -> None:
    assert len(say(piper, text)) == 0


def test_brackets_do_not_smuggle_phonemes_in(piper: PiperTTS, listener: WhisperModel) -> None:
    heard = words_heard(listener, say(piper, "This is [[sparta]] today."), piper.capabilities.sample_rate)
    assert heard[-1] == "today" and "sparta" in heard


def test_an_unknown_voice_is_refused_with_the_known_ones(piper: PiperTTS) -> None:
    with pytest.raises(StageError, match="unknown voice 'alloy'; this model has en_US-joe-medium"):
        say(piper, "Hello.", voice="alloy")


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_an_impossible_speed_is_refused(piper: PiperTTS, speed: float) -> None:
    with pytest.raises(StageError, match="speed"):
        say(piper, "Hello.", speed=speed)


def test_cancelling_stops_between_two_sentences(piper: PiperTTS) -> None:
    cancelled = False
    made = piper.synthesize("One sentence. And another.", voice="", speed=1.0, is_cancelled=lambda: cancelled)
    assert len(next(made)) > 0
    cancelled = True
    with pytest.raises(Cancelled):
        next(made)


def test_threads_that_share_a_voice_do_not_disturb_each_other(piper: PiperTTS, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piper._voice.config, "noise_scale", 0.0)
    monkeypatch.setattr(piper._voice.config, "noise_w_scale", 0.0)
    texts = ["The first counts apples.", "The second sings.", "And the third one? It listens."]
    alone = [say(piper, text) for text in texts]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda text: say(piper, text), texts * 3))
    for one, other in zip(alone * 3, together, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_the_speakers_of_a_voice_are_its_voices_with_the_default_first() -> None:
    config = SimpleNamespace(speaker_id_map={"ann": 0, "bob": 1, "cid": 2}, default_speaker_id=1)
    assert list(_speakers(config, Path("voice.onnx"))) == ["bob", "ann", "cid"]
    config = SimpleNamespace(speaker_id_map={}, default_speaker_id=0)
    assert _speakers(config, Path("xx-voice.onnx")) == {"xx-voice": 0}


def test_a_damaged_voice_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"not a model")
    Path(f"{path}.json").write_text(Path(f"{models.resolve('tts', 'en_US-joe-medium')}.json").read_text())
    with pytest.raises(ModelLoadError, match=r"broken\.onnx"):
        PiperTTS.load(TTSArguments(voice=str(path)), threads=1)


def test_a_damaged_description_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"not a model")
    Path(f"{path}.json").write_text("{")
    with pytest.raises(ModelLoadError, match=r"broken\.onnx"):
        PiperTTS.load(TTSArguments(voice=str(path)), threads=1)


def test_without_piper_the_line_that_installs_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "piper", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'speech-to-speech-server\[local\]'"):
        PiperTTS.load(TTSArguments(), threads=1)


def test_only_the_phonemes_of_kokoro_import_piper_too() -> None:
    source = Path(sys.modules["speech_to_speech"].__path__[0])
    importing = re.compile(r"^\s*(?:import|from) piper\b", re.MULTILINE)
    users = {path.name for path in source.rglob("*.py") if importing.search(path.read_text())}
    assert users == {"piper_handler.py", "kokoro_phonemes.py"}

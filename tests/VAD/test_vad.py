"""The detectors on real models, and the log-mel front end against independent references."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sounds import hum, noise
from speech_to_speech.arguments_classes import VADArguments
from speech_to_speech.audio.resampling import resample
from speech_to_speech.audio.wav import read_wav
from speech_to_speech.errors import ModelLoadError
from speech_to_speech.stage_types import RECOGNITION_RATE, VAD_FRAME_SAMPLES, Samples
from speech_to_speech.VAD.log_mel import log_mel, mel_filters
from speech_to_speech.VAD.silero import SileroVAD
from speech_to_speech.VAD.smart_turn import SmartTurn

RECORDINGS = Path(__file__).parents[2] / "src" / "speech_to_speech" / "bench" / "recordings"


@pytest.fixture(scope="module")
def silero() -> SileroVAD:
    return SileroVAD.load(VADArguments(), 1)


@pytest.fixture(scope="module")
def smart_turn() -> SmartTurn:
    return SmartTurn.load(VADArguments(), 1)


def _recording(name: str) -> Samples:
    return read_wav(RECORDINGS / f"{name}.wav", RECOGNITION_RATE)


def _frames(samples: Samples) -> list[Samples]:
    count = len(samples) // VAD_FRAME_SAMPLES
    return [samples[i * VAD_FRAME_SAMPLES : (i + 1) * VAD_FRAME_SAMPLES] for i in range(count)]


def _probabilities(silero: SileroVAD, samples: Samples) -> list[float]:
    state = silero.new_state()
    return [float(silero.detect(frame[None], [state])[0]) for frame in _frames(samples)]


def test_speech_is_found_and_noise_is_not(silero: SileroVAD) -> None:
    speech = _probabilities(silero, _recording("librivox_0930"))
    assert np.mean(np.array(speech) > 0.5) > 0.6
    for sound in (noise(), hum(), np.zeros(48_000, np.float32)):
        assert max(_probabilities(silero, resample(sound, 24_000, RECOGNITION_RATE))) < 0.5


def test_a_batch_of_sessions_gives_what_each_gives_alone(silero: SileroVAD) -> None:
    recordings = [_recording(name) for name in ("librivox_0930", "cmu_go_forward", "espeak_us_spider")]
    alone = [_probabilities(silero, recording) for recording in recordings]
    states = [silero.new_state() for _ in recordings]
    frames = [_frames(recording) for recording in recordings]
    together: list[list[float]] = [[] for _ in recordings]
    random = np.random.default_rng(3)
    while any(len(done) < len(all_) for done, all_ in zip(together, frames, strict=True)):
        waiting = [i for i in range(3) if len(together[i]) < len(frames[i])]
        chosen = [i for i in waiting if random.random() < 0.6] or waiting[:1]
        batch = np.stack([frames[i][len(together[i])] for i in chosen])
        for i, probability in zip(chosen, silero.detect(batch, [states[i] for i in chosen]), strict=True):
            together[i].append(float(probability))

    for one, many in zip(alone, together, strict=True):
        np.testing.assert_allclose(many, one, atol=1e-4)


def test_log_mel_equals_the_feature_extractor_of_faster_whisper() -> None:
    from faster_whisper.feature_extractor import FeatureExtractor

    samples = _recording("librivox_0930")[: 160 * 300]
    reference = FeatureExtractor(feature_size=80)(samples, padding=0)[:, :300]
    np.testing.assert_allclose(log_mel(samples)[:, :299], reference[:, :299], atol=2e-3)


def test_log_mel_of_a_tone_equals_a_discrete_fourier_transform_done_by_hand() -> None:
    time = np.arange(1600) / RECOGNITION_RATE
    samples = (0.5 * np.sin(2 * np.pi * 1000 * time)).astype(np.float32)
    frame = 5  # centred on sample 800, far from the mirrored ends
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    piece = samples[800 - 200 : 800 + 200] * window
    angles = -2j * np.pi * np.outer(np.arange(201), np.arange(400)) / 400
    power = np.abs(np.exp(angles) @ piece) ** 2
    energies = np.log10(np.maximum(power @ mel_filters(80), 1e-10))
    loudest = np.argmax(energies)

    ours = log_mel(samples)[:, frame]
    assert np.argmax(ours) == loudest
    np.testing.assert_allclose(ours[loudest], (energies[loudest] + 4) / 4, atol=1e-4)


def test_smart_turn_sees_what_the_reference_features_show_it(smart_turn: SmartTurn) -> None:
    """The same model fed by faster_whisper's features: zero-padded in front to 8 s, zero mean, unit variance."""
    import onnxruntime
    from faster_whisper.feature_extractor import FeatureExtractor

    from speech_to_speech.models import resolve

    session = onnxruntime.InferenceSession(str(resolve("turn", "smart-turn-v3.2")), providers=["CPUExecutionProvider"])
    for name in ("librivox_0930", "cmu_go_forward", "espeak_us_table"):
        samples = _recording(name)
        padded = np.zeros(8 * RECOGNITION_RATE, np.float32)
        padded[-len(samples) :] = samples[-len(padded) :]
        normal = (padded - padded.mean()) / np.sqrt(padded.var() + 1e-7)
        features = FeatureExtractor(feature_size=80)(normal, padding=0)[:, :800]
        expected = session.run(None, {"input_features": features[None].astype(np.float32)})[0][0, 0]
        assert abs(smart_turn.predict([samples])[0] - expected) < 0.02


def test_several_turns_in_one_call_are_judged_like_each_alone(smart_turn: SmartTurn) -> None:
    turns = [_recording(name) for name in ("librivox_0930", "cmu_go_forward")]
    alone = [smart_turn.predict([turn])[0] for turn in turns]
    np.testing.assert_allclose(smart_turn.predict(turns), alone, atol=0.02)


def test_a_turn_longer_than_the_window_is_judged_by_its_end(smart_turn: SmartTurn) -> None:
    end = np.concatenate([_recording("librivox_0930")] * 3)[-8 * RECOGNITION_RATE :]
    longer = np.concatenate([_recording("espeak_us_table"), end])
    assert abs(smart_turn.predict([longer])[0] - smart_turn.predict([end])[0]) < 0.02


@pytest.mark.parametrize("load", [SileroVAD.load, SmartTurn.load], ids=["silero", "smart_turn"])
def test_a_file_that_is_no_model_is_named(load: Callable[[VADArguments, int], object], tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"nonsense")
    with pytest.raises(ModelLoadError, match="broken"):
        load(VADArguments(model=str(broken), turn_model=str(broken)), 1)

"""The generator: what its table promises, and a few scenes that need no model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from make_scenes import TABLE, main, scene_name, split_of
from scene_sounds import RATE, background, coughs, levels, with_pauses
from speech_to_speech.bench.scenes import KINDS, load_scenes

ROWS = yaml.safe_load(TABLE.read_text(encoding="utf-8"))


def test_the_table_has_every_kind_in_both_splits_and_no_voice_or_template_in_two() -> None:
    names = [scene_name(row) for row in ROWS["scenes"]]
    assert len(set(names)) == len(names) >= 60
    counted = Counter((row["kind"], split_of(ROWS, row)) for row in ROWS["scenes"])
    assert set(counted) == {(kind, split) for kind in KINDS for split in ("train", "heldout")}


def test_scenes_without_a_model_are_made_and_can_be_loaded(tmp_path: Path) -> None:
    names = ["question_cmu_somewhere", "noise_cmu_forward", "interruption_cmu_forward", "cough_joe_905"]
    assert main([str(tmp_path), "--only", *names]) == 0
    scenes = {scene.name: scene for scene in load_scenes(tmp_path)}
    assert set(scenes) == set(names)
    assert scenes["question_cmu_somewhere"].real and scenes["question_cmu_somewhere"].expect.turns == 1
    assert scenes["interruption_cmu_forward"].expect.interrupted is True
    assert [step.role for step in scenes["noise_cmu_forward"].steps] == ["noise", "turn"]
    assert scenes["cough_joe_905"].expect.reply is False
    question = scenes["question_cmu_somewhere"]
    assert question.expect.must_not_reply_before_ms == int(question.steps[0].voiced_ms[1])


def test_the_same_seed_makes_the_same_scene(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        main([str(tmp_path / folder), "--only", "noise_cmu_forward"])
    first, second = (load_scenes(tmp_path / folder)[0].digest for folder in ("a", "b"))
    assert first == second


def test_what_this_machine_cannot_make_is_left_out_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--only", "question_allison_hold"]) == 1
    assert "left out question_allison_hold: pls-hold-while-try.wav is in Debian's packages" in capsys.readouterr().err


def test_a_pause_is_put_at_the_quietest_point_and_sounds_like_the_room() -> None:
    room = 0.001 * np.random.default_rng(3).normal(size=2 * RATE).astype(np.float32)
    speech = room + np.float32(0.3) * np.sin(np.arange(2 * RATE) / 10).astype(np.float32)
    speech[RATE : RATE + 2400] = room[RATE : RATE + 2400]  # 100 ms of quiet in the middle
    made = with_pauses([speech], [600], seed=1)
    assert len(made) == 2 * RATE + 0.6 * RATE
    quiet = levels(made) < 0.01
    assert 34 <= quiet.sum() <= 36, "600 ms of pause and 100 ms that were quiet already, in windows of 20 ms"
    assert levels(made)[quiet].min() > 0


@pytest.mark.parametrize("kind", ["white", "pink", "hum"])
def test_noise_has_the_level_asked_for(kind: str) -> None:
    assert np.sqrt(np.mean(background(kind, 2.0, 0.1, seed=1) ** 2)) == pytest.approx(0.1, rel=1e-3)


def test_each_cough_adds_a_burst_and_a_pause() -> None:
    assert len(coughs(3)) - len(coughs(2)) == RATE // 3 + RATE // 5

"""Scene files: what is read, and what a mistake in one is answered with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from speech_to_speech.audio.wav import write_wav
from speech_to_speech.bench.scenes import load_scene, load_scenes
from speech_to_speech.errors import ConfigurationError


def scene_yaml(**changes: Any) -> dict[str, Any]:
    """A question of one second, voiced from 100 to 899 ms."""
    return {
        "kind": "question",
        "split": "train",
        "voice": "joe",
        "template": "capital",
        "real": False,
        "seed": 1,
        "steps": [{"wav": "turn.wav", "role": "turn", "at": {"after": "start", "ms": 500}}],
        "expect": {"turns": 1, "reply": True, "must_not_reply_before_ms": 899},
    } | changes


def write_scene(folder: Path, content: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    samples = np.zeros(24_000, np.float32)
    samples[2_400:21_600] = 0.5
    write_wav(folder / "turn.wav", samples, 24_000)
    path = folder / "scene.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_a_scene_is_read_with_its_sound_and_the_end_of_its_voice(tmp_path: Path) -> None:
    scene = load_scene(write_scene(tmp_path / "one", scene_yaml(leak={"delay_ms": 60, "gain_db": -20})))
    assert (scene.name, scene.kind, scene.expect.turns) == ("one", "question", 1)
    assert scene.leak is not None and scene.leak.gain_db == -20
    assert scene.steps[0].duration_ms == 1000
    assert scene.steps[0].voiced_ms == pytest.approx((100, 900), abs=0.1)


TWO_STEPS = [
    {"wav": "turn.wav", "role": "turn", "at": {"after": "start", "ms": 0}},
    {"wav": "turn.wav", "role": "turn", "at": {"after": "whenever", "ms": 0}},
]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "chat"}, r"scene.yaml: kind: 'chat': expected one of question, pause"),
        ({"real": "yes"}, r"scene.yaml: real: 'yes': expected true or false"),
        ({"seed": -1}, r"scene.yaml: seed: -1: expected a whole number from 0"),
        ({"steps": []}, r"scene.yaml: steps: expected a list with at least one entry"),
        ({"steps": TWO_STEPS}, r"steps\[1\].at.after: 'whenever': expected one of start, user_end, assistant_start"),
        ({"steps": [{"wav": "turn.wav", "role": "turn", "at": {"after": "start"}}]}, r"steps\[0\].at.ms: missing"),
        ({"steps": [{"wav": "no.wav", "role": "turn", "at": {"after": "start", "ms": 0}}]}, r"no.wav: No such file"),
        (
            {"expect": {"turns": 2, "reply": True, "must_not_reply_before_ms": 9}},
            r"expect.turns: it must be the number",
        ),
        ({"expect": {"turns": 1, "reply": True}}, r"expect.must_not_reply_before_ms: missing; give the last voiced ms"),
        ({"expext": 1}, r"scene.yaml: expext: unknown key; known here: expect"),
        ({"leak": {"delay_ms": 10, "gain_db": 6}}, r"leak.gain_db: 6: expected a number from -120 to 0"),
    ],
)
def test_a_mistake_is_told_by_file_key_and_remedy(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        load_scene(write_scene(tmp_path / "one", scene_yaml(**change)))


def test_an_interruption_needs_a_step_that_interrupts(tmp_path: Path) -> None:
    expect = {"turns": 1, "reply": True, "must_not_reply_before_ms": 899, "interrupted": True}
    with pytest.raises(ConfigurationError, match=r"expect.interrupted: no step starts after assistant_start"):
        load_scene(write_scene(tmp_path / "one", scene_yaml(expect=expect)))


def test_an_empty_folder_is_answered_with_how_to_make_scenes(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"make some: scripts/make_scenes.py"):
        load_scenes(tmp_path)


def test_kinds_take_turns_so_that_a_limit_keeps_them_all(tmp_path: Path) -> None:
    for kind in ("pause", "question"):
        for number in (1, 2):
            write_scene(tmp_path / f"{kind}_{number}", scene_yaml(kind=kind))
    assert [scene.name for scene in load_scenes(tmp_path)] == ["question_1", "pause_1", "question_2", "pause_2"]
    assert [scene.kind for scene in load_scenes(tmp_path, limit=2)] == ["question", "pause"]
    assert {scene.kind for scene in load_scenes(tmp_path, kinds=["pause"])} == {"pause"}
    with pytest.raises(ConfigurationError, match="--kinds chat: expected some of question"):
        load_scenes(tmp_path, kinds=["chat"])
    with pytest.raises(ConfigurationError, match="--limit 0: expected at least 1"):
        load_scenes(tmp_path, limit=0)
    with pytest.raises(ConfigurationError, match="none of its 4 scenes"):
        load_scenes(tmp_path, split="heldout")


def test_the_digest_follows_the_sound(tmp_path: Path) -> None:
    path = write_scene(tmp_path / "one", scene_yaml())
    before = load_scene(path).digest
    assert load_scene(path).digest == before
    write_wav(path.parent / "turn.wav", np.full(24_000, 0.25, np.float32), 24_000)
    assert load_scene(path).digest != before

"""The whole benchmark, with scripted stages behind a real server: played, judged, kept, and not played twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.test_scenes import scene_yaml, write_scene
from scripted_stages import scripted_stages
from speech_to_speech.audio.wav import load_wav
from speech_to_speech.bench import scene_bench, scene_player
from speech_to_speech.cli import main


@pytest.fixture
def scenes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One question; the waits of the player are short, and no model is loaded."""
    monkeypatch.setattr(scene_player, "SETTLING_MS", 300)
    monkeypatch.setattr(scene_bench, "load_stages", lambda _configuration: scripted_stages())
    write_scene(tmp_path / "scenes" / "question_one", scene_yaml())
    return tmp_path / "scenes"


def test_scenes_are_played_judged_recorded_and_kept(
    scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["bench", "turn", "--scenes", str(scenes), "--json", str(tmp_path / "out.json")]
    assert main([*command, "--record", str(tmp_path / "recordings")]) == 0
    report = json.loads((tmp_path / "out.json").read_text())
    assert [result["policy"] for result in report["results"]] == ["ours", "hold 500"]
    for result in report["results"]:
        verdict = result["verdict"]
        assert (verdict["turns"], verdict["cut_off"], verdict["answered"]) == (1, False, True)
        assert (verdict["transcript"], verdict["answer"]) == ("hello", "You said hello.")
    assert {point["policy"] for point in report["curve"]} >= {"ours", "hold 300", "hold 2000"}
    assert load_wav(tmp_path / "recordings" / "question_one.ours.1.wav")[1] == 24_000
    assert "question     synthetic ours" in capsys.readouterr().out

    async def never(*_: Any) -> None:
        raise AssertionError("this was played before")

    monkeypatch.setattr(scene_bench, "play_scene", never)
    assert main(command) == 0
    assert json.loads((tmp_path / "out.json").read_text())["results"] == report["results"]


def test_a_replay_alone_plays_nothing(scenes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    assert main(["bench", "turn", "--scenes", str(scenes), "--replay-only", "--json", str(out)]) == 0
    assert json.loads(out.read_text())["results"] == []
    assert "hold 2000" in capsys.readouterr().out


@pytest.mark.parametrize("flag", [["--kinds", "pause"], ["--limit", "3"], ["--png", "x.png"], ["--replay-only"]])
def test_flags_of_the_scenes_need_scenes(flag: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "turn", *flag]) == 1
    assert "only with --scenes DIR" in capsys.readouterr().err

from __future__ import annotations

import json
from pathlib import Path

import pytest

from speech_to_speech.client.event_log import event_log
from speech_to_speech.errors import ConfigurationError


def test_each_event_is_a_line_with_its_time_and_direction(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with event_log(path) as observe:
        observe("out", {"type": "session.update"})
        observe("in", {"type": "session.updated", "note": "grüß dich"})
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(line["direction"], line["event"]["type"]) for line in lines] == [
        ("out", "session.update"),
        ("in", "session.updated"),
    ]
    assert lines[1]["event"]["note"] == "grüß dich"
    assert 0 <= lines[0]["t"] <= lines[1]["t"]


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with event_log(None) as observe:
        observe("in", {"type": "error"})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "events.jsonl"
    with pytest.raises(ConfigurationError, match=r"^--events .*events\.jsonl: No such file"), event_log(path):
        pass

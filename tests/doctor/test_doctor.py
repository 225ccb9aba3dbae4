"""`doctor` and `voices` on this machine, and on one where things are missing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from speech_to_speech.arguments_classes import Configuration, LLMArguments, PipelineArguments
from speech_to_speech.backend import Requirement
from speech_to_speech.cli import main
from speech_to_speech.doctor import machine
from speech_to_speech.doctor.report import doctor
from speech_to_speech.errors import MissingDependencyError, ModelLoadError
from speech_to_speech.runtime import backends, installed_backends
from speech_to_speech.TTS.piper_handler import PiperTTS

OTHER_PROJECT = re.compile(r"pip install '?speech-to-speech(?!-server)")


def report(capsys: pytest.CaptureFixture[str], configuration: Configuration | None = None) -> tuple[int, dict]:
    code = doctor(configuration or Configuration(), as_json=True)
    return code, json.loads(capsys.readouterr().out)


def backend(found: dict, stage: str, name: str) -> dict:
    return next(entry for entry in found["backends"] if (entry["stage"], entry["name"]) == (stage, name))


def test_the_default_backends_work_here(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = report(capsys)

    assert code == 0
    chosen = {entry["stage"]: entry["name"] for entry in found["backends"] if entry["chosen"]}
    assert chosen == {
        "vad": "silero",
        "turn": "smart-turn",
        "stt": "faster-whisper",
        "llm": "llama-cpp",
        "tts": "piper",
    }
    assert all(entry["works"] for entry in found["backends"] if entry["chosen"])
    names = [finding["name"] for finding in found["machine"]]
    assert names[:4] == ["python", "processor", "memory", "graphics"] and names[-1] == "models"


def test_the_report_for_people_has_a_line_for_every_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    for stage, names in installed_backends.installed_backends().items():
        for name in names:
            assert re.search(rf"^{stage} +{name} ", shown, re.MULTILINE)
    assert not OTHER_PROJECT.search(shown)


def test_a_missing_extra_is_named_with_the_line_that_installs_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = Requirement("no_such_module", "piper-tts", "local")
    monkeypatch.setattr(PiperTTS, "requirements", (absent,))
    code, found = report(capsys)

    assert code == 1
    entry = backend(found, "tts", "piper")
    assert (entry["works"], entry["reason"]) == (False, "piper-tts is not installed")
    assert entry["remedy"] == "install it with: pip install 'speech-to-speech-server[local]'"
    assert main(["doctor"]) == 1
    assert not OTHER_PROJECT.search(capsys.readouterr().out)


def test_what_is_not_used_may_be_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, found = report(capsys)
    assert code == 0
    entry = backend(found, "llm", "openai")
    assert not entry["works"] and "--llm_base_url" in entry["reason"]

    nowhere = LLMArguments(base_url="http://127.0.0.1:9/v1")
    chosen = replace(Configuration(), pipeline=PipelineArguments(llm="openai"), llm=nowhere)
    code, found = report(capsys, chosen)
    assert code == 1
    entry = backend(found, "llm", "openai")
    assert "cannot connect" in entry["reason"] and entry["remedy"] == "is the server running?"


def test_a_name_that_is_no_backend_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = report(capsys, replace(Configuration(), pipeline=PipelineArguments(tts="pipr")))
    assert code == 1
    assert "Did you mean piper?" in backend(found, "tts", "pipr")["reason"]


def test_a_broken_plug_in_does_not_break_the_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = backends.entry_points

    def with_a_broken_one(*, group: str) -> list[EntryPoint]:
        broken = EntryPoint("broken", "no_such_package.voice:Voice", group)
        return [*real(group=group), *([broken] if group.endswith(".tts") else [])]

    monkeypatch.setattr(backends, "entry_points", with_a_broken_one)
    monkeypatch.setattr(installed_backends, "entry_points", with_a_broken_one)
    code, found = report(capsys)
    assert code == 0
    assert "no_such_package" in backend(found, "tts", "broken")["reason"]


def test_a_library_that_does_not_load_is_no_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import a_part_that_is_gone")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelLoadError, match=r"a_part_that_is_gone.*; try: pip install --force-reinstall half"):
        Requirement("half_installed", "half", "local").check()
    with pytest.raises(MissingDependencyError):
        Requirement("not_there_at_all", "half", "local").check()
    with pytest.raises(ModelLoadError):
        Requirement("not_there_at_all", "half").check()


def test_a_models_folder_that_cannot_be_written_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2S_MODELS_DIR", str(tmp_path / "models" / "deep"))
    monkeypatch.setattr(machine.os, "access", lambda path, mode: False)
    assert machine.machine_findings()[-1].remedy == "choose another folder with S2S_MODELS_DIR"


def test_graphics_are_what_the_driver_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771 MiB, 570.86.15'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    graphics = next(finding for finding in machine.machine_findings() if finding.name == "graphics")
    assert graphics.value == "NVIDIA H200, 143771 MiB, 570.86.15"


def test_voices_are_listed_by_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["voices"]) == 0
    assert "--tts piper\n  --tts_voice en_US-joe-medium\n" in capsys.readouterr().out

"""The server that `talk` starts for itself, with stages that need no models."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import numpy as np
import pytest

from scripted_stages import scripted_stages
from speech_to_speech.arguments_classes import Configuration, ServerArguments
from speech_to_speech.audio.wav import write_wav
from speech_to_speech.cli import main
from speech_to_speech.client import local_server
from speech_to_speech.client.realtime_client import connect
from speech_to_speech.errors import ModelLoadError
from speech_to_speech.runtime import backends


def test_talk_without_an_address_talks_to_a_server_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(backends, "load_stages", lambda _configuration: scripted_stages())
    question = tmp_path / "question.wav"
    write_wav(question, np.random.default_rng(0).uniform(-0.5, 0.5, 12_000).astype(np.float32), 24_000)
    assert main(["talk", "--input", str(question)]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("you: hello\nassistant: ")
    assert shown.err.startswith("loading models ...\nmodels loaded in ")


def test_a_model_that_cannot_be_loaded_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_configuration: Configuration) -> None:
        raise ModelLoadError("--llm llama-cpp: no memory")

    monkeypatch.setattr(backends, "load_stages", fail)
    assert main(["demo", "--output", str(tmp_path / "answer.wav")]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "loading models ...",
        "speech-to-speech: --llm llama-cpp: no memory",
    ]


def test_it_listens_on_the_loopback_whatever_address_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "load_stages", lambda _configuration: scripted_stages())
    configuration = Configuration(server=ServerArguments(host="0.0.0.0"))

    async def talk() -> str:
        async with local_server.local_server(configuration, lambda _line: None) as url, connect(url) as client:
            async for event in client.events():
                assert event["type"] == "session.created"
                return url
        raise AssertionError("no event")

    assert asyncio.run(talk()).startswith("ws://127.0.0.1:")


def test_a_long_load_is_told_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "NOTICE_EVERY_S", 0.01)
    lines: list[str] = []
    loaded = threading.Event()

    def notice(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            loaded.set()

    assert asyncio.run(local_server._in_thread(lambda: loaded.wait(30), notice)) is True
    assert all(line.startswith("loading models ...") for line in lines[:3])
    assert lines[-1].startswith("models loaded in ")

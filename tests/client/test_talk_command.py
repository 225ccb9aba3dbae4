"""The command as a user runs it, in real time, with short recordings and a scripted server."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from client.scripted_realtime_server import (
    Script,
    ScriptedServer,
    audio,
    failed_response,
    response_created,
    response_done,
    serving,
    turn_ended,
    words,
)
from speech_to_speech.audio.wav import write_wav
from speech_to_speech.cli import main
from speech_to_speech.client.echo_canceller import EchoCancelledDevice
from speech_to_speech.client.file_device import FileDevice
from speech_to_speech.client.sound_device import SoundDevice
from speech_to_speech.client.talk import device_for


@contextmanager
def served(script: Script, require_key: str = "") -> Iterator[str]:
    """A scripted server in a thread of its own; gives its address."""
    address: list[str] = []
    listening = threading.Event()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with serving(script, require_key=require_key) as server:
            address.append(server.url)
            listening.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    listening.wait()
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


async def answer(server: ScriptedServer) -> None:
    await server.heard(200)
    await server.send(*turn_ended("item_u", "Hello?"), response_created("resp_1"))
    await server.send(words("resp_1", "item_a", "Good day ☀"), audio("resp_1", "item_a", 240), response_done("resp_1"))


async def fail(server: ScriptedServer) -> None:
    await server.heard(200)
    await server.send(response_created("resp_1"), *failed_response("resp_1", "llm: no idea"))


@pytest.fixture
def question(tmp_path: Path) -> str:
    path = tmp_path / "question.wav"
    write_wav(path, np.full(1_600, 0.1, np.float32), 8_000)
    return str(path)


def test_an_answer_is_printed_recorded_and_logged(
    question: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, events = tmp_path / "answer.wav", tmp_path / "events.jsonl"
    with served(answer) as url:
        code = main(["talk", "--url", url, "--input", question, "--output", str(output), "--events", str(events)])
    assert code == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["you: Hello?", "assistant: Good day ☀"]
    with wave.open(str(output)) as recording:
        assert recording.getparams()[:4] == (1, 2, 24_000, 240 * 24)
    log = [json.loads(line) for line in events.read_text().splitlines()]
    assert {line["direction"] for line in log} == {"in", "out"}
    assert log[0]["event"]["type"] == "session.update"
    assert "response.done" in [line["event"]["type"] for line in log if line["direction"] == "in"]


def test_a_failure_is_printed_with_exit_code_1_and_leaves_no_recording(
    question: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "answer.wav"
    with served(fail) as url:
        code = main(["talk", "--url", url, "--input", question, "--output", str(output)])
    assert code == 1
    assert capsys.readouterr().err.splitlines()[-1] == "speech-to-speech: llm: no idea"
    assert not output.exists()


def test_no_reply_within_the_timeout_is_exit_code_1(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def silent(_server: ScriptedServer) -> None:
        pass

    with served(silent) as url:
        code = main(["talk", "--url", url, "--input", question, "--timeout", "0.3"])
    assert code == 1
    assert "no reply within 0.3 s" in capsys.readouterr().err


def test_with_a_file_no_sound_library_is_imported(question: str) -> None:
    program = (
        "import sys; from speech_to_speech.cli import main; code = main(sys.argv[1:]);"
        "assert not {'sounddevice', 'livekit'} & set(sys.modules), 'imported'; sys.exit(code)"
    )
    with served(answer) as url:
        command = [sys.executable, "-c", program, "talk", "--url", url, "--input", question]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_a_terminal_that_cannot_show_a_word_does_not_end_the_conversation(question: str) -> None:
    with served(answer) as url:
        program = "import sys; from speech_to_speech.cli import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", program, "talk", "--url", url, "--input", question]
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        finished = subprocess.run(command, capture_output=True, timeout=60, env=environment)
    assert finished.returncode == 0
    assert b"Good day ?" in finished.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--url", "nonsense://x"], "--url nonsense://x: expected an address"),
        (["--url", "ws://127.0.0.1:1"], "cannot connect to ws://127.0.0.1:1/v1/realtime"),
        (["--url", "ws://127.0.0.1:1", "--output", "/nowhere/answer.wav"], "--output /nowhere/answer.wav"),
        (["--url", "ws://127.0.0.1:1", "--events", "/nowhere/events"], "--events /nowhere/events"),
        (["--url", "ws://127.0.0.1:1", "--input", "/nowhere.wav"], "/nowhere.wav: No such file"),
    ],
)
def test_what_cannot_begin_is_one_line(
    question: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["talk", "--input", question, *arguments])
    error = capsys.readouterr().err
    assert code == 1
    assert error.startswith(f"speech-to-speech: {message}")
    assert error.count("\n") == 1


MICROPHONE = """
import signal, sys, threading, time, types

signal.signal(signal.SIGINT, signal.default_int_handler)  # tests run in the background inherit that it is ignored

class Stream:
    latency = 0.02
    def __init__(self, **settings): self.settings = settings; self.open = True
    def start(self): threading.Thread(target=self.pace, daemon=True).start()
    def close(self): self.open = False
    def pace(self):
        while self.open:
            time.sleep(0.02)
            self.settings["callback"](bytearray(960), 480, None, None)

sys.modules["sounddevice"] = types.SimpleNamespace(
    RawInputStream=Stream, RawOutputStream=Stream, PortAudioError=OSError, query_devices=lambda kind: {})
from speech_to_speech.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_ends_a_conversation_by_microphone_with_its_recording_written(tmp_path: Path) -> None:
    output = tmp_path / "answer.wav"
    done = threading.Event()

    async def answer_and_tell(server: ScriptedServer) -> None:
        await answer(server)
        await server.heard(1000)
        done.set()

    with served(answer_and_tell) as url:
        command = [sys.executable, "-c", MICROPHONE, "talk", "--url", url, "--output", str(output)]
        talking = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.wait(30)
        talking.send_signal(signal.SIGINT)
        shown, error = talking.communicate(timeout=30)
    assert (talking.returncode, error.splitlines()) == (
        0,
        ["speak; Ctrl-C ends the conversation", f"wrote {output} (0.2 s)"],
    )
    assert "assistant: Good day" in shown
    with wave.open(str(output)) as recording:
        assert recording.getnframes() == 240 * 24


def arguments(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{"input": None, "output": None, "headphones": False, **given})


def test_open_speakers_are_echo_cancelled_headphones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(
        RawInputStream=lambda **_: SimpleNamespace(latency=0.0),
        RawOutputStream=lambda **_: SimpleNamespace(latency=0.0),
        PortAudioError=OSError,
        query_devices=lambda kind: {},
    )
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    assert isinstance(device_for(arguments()), EchoCancelledDevice)
    assert isinstance(device_for(arguments(headphones=True)), SoundDevice)
    assert isinstance(device_for(arguments(output="answer.wav")), SoundDevice)


def test_a_file_is_not_echo_cancelled(question: str) -> None:
    assert isinstance(device_for(arguments(input=question)), FileDevice)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--output", "{folder}"], "--output {folder}: this is a folder"),
        (["--events", "{folder}/none/e.jsonl"], "--events {folder}/none/e.jsonl: there is no such folder"),
        (["--output", "{wav}"], "--output {wav}: this is the file of --input; choose another"),
        (["--events", "{folder}/a", "--output", "{folder}/a"], "--events {folder}/a: this is the file of --output"),
        (["--timeout", "0"], "--timeout 0: expected more than 0 seconds"),
        (["--url", "ws://127.0.0.1:9", "--llm_model", "x"], "--llm_model is for a server started here"),
        (["--url", "ws://127.0.0.1:9", "--api_key_file", "{folder}/key"], "--api_key_file {folder}/key: No such file"),
    ],
)
def test_what_cannot_be_is_refused_before_a_conversation_is_held(
    given: list[str], message: str, question: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wav = Path(question)
    recorded = wav.read_bytes()
    given = [text.format(folder=tmp_path, wav=wav) for text in given]

    assert main(["talk", "--input", str(wav), *given]) == 1
    assert message.format(folder=tmp_path, wav=wav) in capsys.readouterr().err
    assert wav.read_bytes() == recorded


def test_silence_is_not_played_for_a_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with wave.open(str(tmp_path / "silence.wav"), "wb") as silence:
        silence.setnchannels(1)
        silence.setsampwidth(2)
        silence.setframerate(24_000)
        silence.writeframes(bytes(4800))

    assert main(["talk", "--url", "ws://127.0.0.1:9", "--input", str(tmp_path / "silence.wav")]) == 1
    assert "there is no sound in it" in capsys.readouterr().err


def test_the_key_of_the_file_is_sent(question: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("sesame\n")
    with served(answer, require_key="sesame") as url:
        given = ["--input", question, "--output", str(tmp_path / "a.wav")]
        assert main(["talk", "--url", url, "--api_key_file", str(tmp_path / "key"), *given]) == 0
        capsys.readouterr()
        (tmp_path / "key").write_text("mellon\n")
        assert main(["talk", "--url", url, "--api_key_file", str(tmp_path / "key"), *given]) == 1
        assert "refuses this API key" in capsys.readouterr().err

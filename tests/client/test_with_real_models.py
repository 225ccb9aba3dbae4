"""The default models, in real time: the demo, and a room in which the assistant hears itself."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from faster_whisper import WhisperModel

from speech_to_speech import models
from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.audio.pcm import pcm16_to_samples, samples_to_pcm16
from speech_to_speech.audio.wav import read_wav
from speech_to_speech.cli import main
from speech_to_speech.client.audio_device import BLOCK_BYTES, RATE, AudioDevice
from speech_to_speech.client.dialogue import Dialogue
from speech_to_speech.client.echo_canceller import EchoCancelledDevice
from speech_to_speech.client.file_device import FileDevice
from speech_to_speech.client.local_server import local_server
from speech_to_speech.client.realtime_client import Event, connect
from speech_to_speech.client.recording import Recording
from speech_to_speech.client.screen import Screen

QUESTION = str(files("speech_to_speech.client") / "assets" / "question.wav")


class EchoingDevice(FileDevice):
    """A recording played in a room where the speaker reaches the microphone: 80 ms later and 12 dB softer."""

    DELAY_BLOCKS = 4
    GAIN = 10 ** (-12 / 20)

    def _capture(self, played: bytes) -> bytes:
        if not hasattr(self, "_in_the_air"):
            self._in_the_air = [bytes(BLOCK_BYTES)] * self.DELAY_BLOCKS
        self._in_the_air.append(played)
        echo = pcm16_to_samples(self._in_the_air.pop(0)) * np.float32(self.GAIN)
        return samples_to_pcm16(pcm16_to_samples(super()._capture(played)) + echo)


async def ask(url: str, device: AudioDevice) -> Counter[str]:
    """Ask, and listen to the answer or until the server hears speech again; returns how often each event came."""
    received: Counter[str] = Counter()
    interrupted = asyncio.Event()

    def observe(direction: str, event: Event) -> None:
        if direction == "in":
            received[event["type"]] += 1
            if event["type"] == "response.done":
                received[event["response"]["status"]] += 1
            if received["input_audio_buffer.speech_started"] > 1:
                interrupted.set()

    async with connect(url, observe) as client:
        dialogue = asyncio.ensure_future(
            Dialogue(client, device, Screen(io.StringIO()), Recording(), timeout_s=45).run()
        )
        interruption = asyncio.ensure_future(interrupted.wait())
        await asyncio.wait([dialogue, interruption], return_when=asyncio.FIRST_COMPLETED)
        for task in (dialogue, interruption):
            task.cancel()
        await asyncio.gather(dialogue, interruption, return_exceptions=True)
    return received


def test_the_assistant_does_not_interrupt_itself_where_its_echo_is_cancelled() -> None:
    async def conversations() -> tuple[Counter[str], Counter[str]]:
        question = read_wav(QUESTION, RATE)
        async with local_server(Configuration(), lambda _line: None) as url:
            cancelled = await ask(url, EchoCancelledDevice(EchoingDevice(question)))
            return cancelled, await ask(url, EchoingDevice(question))

    with_canceller, without = asyncio.run(conversations())
    assert (with_canceller["input_audio_buffer.speech_started"], with_canceller["completed"]) == (1, 1)
    assert without["input_audio_buffer.speech_started"] == 2


def test_the_demo_shows_a_whole_turn_and_leaves_the_answer_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "answer.wav"
    assert main(["demo", "--output", str(output)]) == 0
    shown = capsys.readouterr().out
    assert "you: What is the capital of France?\n" in shown
    for step in ("end of turn decided", "transcript", "first token", "first audio made", "first audible sample"):
        assert f"\n  {step} " in shown
    assert "speech-to-speech serve " in shown
    assert "speech-to-speech talk " in shown
    listener = WhisperModel(str(models.resolve("stt", "base")), device="cpu", compute_type="int8", cpu_threads=2)
    segments, _ = listener.transcribe(str(output), language="en")
    assert "Paris" in " ".join(segment.text for segment in segments)

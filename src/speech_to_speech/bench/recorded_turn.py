"""One turn played to a server in real time and recorded as a client with a speaker would hear it."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from speech_to_speech.audio.pcm import pcm16_to_samples
from speech_to_speech.bench.questions import Question
from speech_to_speech.client.audio_device import RATE, AudioDevice
from speech_to_speech.client.file_device import FileDevice
from speech_to_speech.client.realtime_client import RealtimeClient, connect

AUDIBLE_LEVEL = 0.01
"""A sample of the answer counts as audible above this share of full scale."""

GIVE_UP_S = 30.0
"""How long after the question an answer is waited for."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """`voice_to_voice_ms`: last voiced sample of the user to first audible sample of the answer, both as recorded.

    Negative when the answer was heard before the user had finished; None when none was heard. `timeline` is the
    server's own record of the turn.
    """

    question: str
    voice: str
    length_class: str
    spoken_s: float
    voice_to_voice_ms: float | None
    transcript: str
    answer: str
    timeline: dict[str, Any]


async def record_turn(url: str, question: Question, session: dict[str, Any]) -> RecordedTurn:
    """Ask `question` in a conversation of its own with the session settings `session`."""
    device = FileDevice(question.samples)
    heard: dict[str, Any] = {"transcript": "", "answer": "", "timeline": {}}
    done = asyncio.Event()
    async with connect(url) as client:
        await client.send({"type": "session.update", "session": {"type": "realtime", **session}})
        reader = asyncio.create_task(_listen(client, device, heard, done))
        try:
            played = await _play(client, device, question, done)
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
    audible = np.flatnonzero(np.abs(pcm16_to_samples(played)) > AUDIBLE_LEVEL)
    wait_ms = (float(audible[0]) / RATE - question.voiced_end_s) * 1000 if len(audible) else None
    return RecordedTurn(
        question.name, question.voice, question.length_class, round(question.spoken_s, 2), wait_ms, **heard
    )


async def _play(client: RealtimeClient, device: AudioDevice, question: Question, done: asyncio.Event) -> bytes:
    """Stream until the answer is over; returns what the speaker played from the first block on."""
    played = bytearray()
    async for block in device.blocks():
        played += block.played
        elapsed = len(played) / 2 / RATE
        if (done.is_set() and device.pending_ms == 0) or elapsed > question.voiced_end_s + GIVE_UP_S:
            break
        await client.send_audio(block.captured)
    return bytes(played)


async def _listen(client: RealtimeClient, device: AudioDevice, heard: dict[str, Any], done: asyncio.Event) -> None:
    async for event in client.events():
        kind = event["type"]
        if kind == "response.output_audio.delta":
            device.play(base64.b64decode(event["delta"]))
        elif kind == "input_audio_buffer.speech_started":
            device.flush()
            done.clear()
        elif kind == "conversation.item.input_audio_transcription.completed":
            heard["transcript"] += event["transcript"] + " "
        elif kind == "response.output_audio_transcript.done":
            heard["answer"] = event["transcript"]
        elif kind == "response.done":
            heard["timeline"] = event["response"].get("timeline", {})
            done.set()

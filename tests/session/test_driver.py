"""How incoming audio becomes VAD frames, and results come back, with a runtime that only notes what it is asked."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from speech_to_speech.audio.pcm import pcm16_to_samples
from speech_to_speech.audio.resampling import resample
from speech_to_speech.conversation.reply import Pacing
from speech_to_speech.realtime.session_config import ServerVoices
from speech_to_speech.runtime.inline import InlineRuntime
from speech_to_speech.session.driver import SessionDriver
from speech_to_speech.stage_types import VAD_FRAME_SAMPLES, DetectSpeechRequest, Samples, StageFailure, StageRequest

PCM = np.random.default_rng(0).integers(-3_000, 3_000, 24_000).astype("<i2").tobytes()
BEHIND_SAMPLES = 3 * 24
"""The resampler is at most three milliseconds behind."""


class NotingRuntime:
    def __init__(self) -> None:
        self.requests: list[StageRequest] = []
        self.waiting_frames = 0
        self.deliver: Any = None

    def open(self, _name: str, deliver: Any) -> NotingRuntime:
        self.deliver = deliver
        return self

    def submit(self, request: StageRequest) -> None:
        self.requests.append(request)

    def close(self) -> None:
        pass

    def frames(self) -> list[Samples]:
        return [request.samples for request in self.requests if isinstance(request, DetectSpeechRequest)]


def driver_of(runtime: NotingRuntime, sent: list[dict[str, Any]]) -> SessionDriver:
    voices = ServerVoices(("voice",))
    return SessionDriver(cast(InlineRuntime, runtime), sent.append, model="", voices=voices, pacing=Pacing())


def append(pcm: bytes) -> str:
    return json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()})


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=30))
def test_however_audio_is_cut_the_detector_gets_every_frame_as_soon_as_it_is_there(lengths: list[int]) -> None:
    runtime = NotingRuntime()

    async def scenario() -> None:
        driver = driver_of(runtime, [])
        end = 0
        for length in lengths:
            pcm = PCM[2 * end : 2 * (end + length)]
            end += len(pcm) // 2
            await driver.receive(append(pcm))
            there = max(0, end - BEHIND_SAMPLES) * 2 // 3
            assert there // VAD_FRAME_SAMPLES <= len(runtime.frames()) <= end * 2 // 3 // VAD_FRAME_SAMPLES
        driver.close()

    asyncio.run(scenario())
    whole = resample(pcm16_to_samples(PCM), 24_000, 16_000)
    for number, frame in enumerate(runtime.frames()):
        start = number * VAD_FRAME_SAMPLES
        np.testing.assert_array_equal(frame, whole[start : start + VAD_FRAME_SAMPLES])


def test_audio_that_completes_no_frame_belongs_to_what_is_committed() -> None:
    sent: list[dict[str, Any]] = []

    async def scenario() -> None:
        driver = driver_of(NotingRuntime(), sent)
        for _ in range(7):  # 140 ms in frames of 20 ms: the last one completes nothing
            await driver.receive(append(PCM[:960]))
        await driver.receive('{"type": "input_audio_buffer.commit"}')
        item_id = next(event["item_id"] for event in sent if event["type"] == "input_audio_buffer.committed")
        await driver.receive(json.dumps({"type": "conversation.item.retrieve", "item_id": item_id}))
        driver.close()

    asyncio.run(scenario())
    (item,) = [event["item"] for event in sent if event["type"] == "conversation.item.retrieved"]
    kept_ms = len(base64.b64decode(item["content"][0]["audio"])) / 48
    assert 140 - 3 <= kept_ms <= 140


def test_results_from_many_threads_all_arrive() -> None:
    sent: list[dict[str, Any]] = []
    runtime = NotingRuntime()

    async def scenario() -> None:
        driver = driver_of(runtime, sent)
        deliver = runtime.deliver
        threads = [
            asyncio.to_thread(lambda: [deliver(StageFailure(0, "vad", "no")) for _ in range(50)]) for _ in "abcd"
        ]
        await asyncio.gather(*threads)
        await asyncio.sleep(0.01)
        driver.close()

    asyncio.run(scenario())
    assert sum(event["type"] == "error" for event in sent) == 200

"""The VAD's worker thread: batches of sessions, frames of one session one after the other."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scripted_stages import LoudnessVAD
from speech_to_speech.runtime.listening_workers import VADSession, VADWorker
from speech_to_speech.stage_types import (
    VAD_FRAME_SAMPLES,
    DetectSpeechRequest,
    SpeechProbability,
    StageResult,
)
from speech_to_speech.VAD.base import VoiceActivityState


class Recorder(LoudnessVAD):
    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def detect(self, frames: NDArray[np.float32], states: Sequence[VoiceActivityState]) -> NDArray[np.float32]:
        self.batches.append([id(state) for state in states])
        return super().detect(frames, states)


def test_every_frame_of_every_session_is_judged_once_and_in_order() -> None:
    detector = Recorder()
    worker = VADWorker(detector)
    results: list[list[StageResult]] = [[] for _ in range(20)]
    all_judged = threading.Semaphore(0)

    def deliver_to(number: int) -> None:
        def deliver(result: StageResult) -> None:
            results[number].append(result)
            all_judged.release()

        sessions.append(worker.open(deliver))

    sessions: list[VADSession] = []
    for number in range(len(results)):
        deliver_to(number)
    for index in range(30):
        for session in sessions:
            level = 0.5 if index % 3 == 0 else 0.0
            worker.submit(session, DetectSpeechRequest(index, np.full(VAD_FRAME_SAMPLES, level, np.float32)))
    for _ in range(30 * len(results)):
        assert all_judged.acquire(timeout=20)
    worker.stop()

    expected = [SpeechProbability(index, 1.0 if index % 3 == 0 else 0.0) for index in range(30)]
    assert results == [expected] * len(results)
    assert all(len(batch) == len(set(batch)) for batch in detector.batches)

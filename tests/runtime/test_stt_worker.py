"""The order of audio and of decodes in the recogniser's queue."""

from __future__ import annotations

import queue
import threading
from typing import Any

import numpy as np

from speech_to_speech.errors import Cancelled
from speech_to_speech.runtime.listening_workers import STTWorker
from speech_to_speech.runtime.tasks import Cancellations
from speech_to_speech.stage_types import (
    IsCancelled,
    Samples,
    SpeechToTextCapabilities,
    StageResult,
    TranscribeRequest,
    Transcript,
    TranscriptResult,
)
from speech_to_speech.STT.base import RecognitionStream, SpeechToText


class ListingStream(RecognitionStream):
    """Its transcript lists the first value of each stretch it was given; decoding waits for the gate."""

    def __init__(self, gate: threading.Event, begun: threading.Event) -> None:
        self._values: list[int] = []
        self._gate, self._begun = gate, begun

    def accept(self, samples: Samples) -> None:
        self._values += [int(value) for value in samples]

    def decode(self, *, final: bool, is_cancelled: IsCancelled) -> Transcript:
        self._begun.set()
        while not self._gate.wait(0.005):
            if is_cancelled():
                raise Cancelled
        text = " ".join(map(str, self._values))
        return Transcript(text, text, final)


class ListingSTT(SpeechToText):
    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()

    @classmethod
    def load(cls, arguments: Any, threads: int) -> ListingSTT:
        return cls()

    @property
    def capabilities(self) -> SpeechToTextCapabilities:
        return SpeechToTextCapabilities(partials=True)

    def open(self, *, language: str = "", prompt: str = "") -> RecognitionStream:
        return ListingStream(self.gate, self.begun)


def _request(token: int, value: int, *, final: bool, utterance: int = 1) -> TranscribeRequest:
    return TranscribeRequest(token, utterance, value, np.array([value], np.float32), final)


def _texts(results: queue.Queue[StageResult], count: int) -> list[tuple[int, str]]:
    found = []
    for _ in range(count):
        result = results.get(timeout=20)
        assert isinstance(result, TranscriptResult), result
        found.append((result.token, result.transcript.text))
    return found


def test_audio_stays_in_order_when_a_final_overtakes_a_partial() -> None:
    recogniser = ListingSTT()
    worker = STTWorker(recogniser)
    results: queue.Queue[StageResult] = queue.Queue()
    session = worker.open(Cancellations(), results.put)
    busy = worker.open(Cancellations(), results.put)
    worker.submit(busy, _request(9, 0, final=True))
    recogniser.begun.wait(20)
    worker.submit(session, _request(1, 1, final=False))
    worker.submit(session, _request(2, 2, final=True))
    recogniser.gate.set()

    assert _texts(results, 3) == [(9, "0"), (2, "1 2"), (1, "1 2")]
    worker.stop()


def test_the_audio_of_a_cancelled_decode_is_not_lost() -> None:
    recogniser = ListingSTT()
    recogniser.gate.set()
    worker = STTWorker(recogniser)
    results: queue.Queue[StageResult] = queue.Queue()
    cancellations = Cancellations()
    session = worker.open(cancellations, results.put)
    cancellations.cancel(1)
    worker.submit(session, _request(1, 1, final=False))
    worker.submit(session, _request(2, 2, final=True))

    assert _texts(results, 1) == [(2, "1 2")]
    worker.stop()


def test_a_running_partial_gives_way_to_a_final_and_is_done_after_it() -> None:
    recogniser = ListingSTT()
    worker = STTWorker(recogniser)
    results: queue.Queue[StageResult] = queue.Queue()
    first = worker.open(Cancellations(), results.put)
    second = worker.open(Cancellations(), results.put)
    worker.submit(first, _request(1, 1, final=False))
    recogniser.begun.wait(20)
    worker.submit(second, _request(2, 7, final=True))
    recogniser.gate.set()

    assert sorted(_texts(results, 2)) == [(1, "1"), (2, "7")]
    worker.stop()


def test_partials_wait_while_a_reply_is_being_made() -> None:
    recogniser = ListingSTT()
    recogniser.gate.set()
    worker = STTWorker(recogniser)
    results: queue.Queue[StageResult] = queue.Queue()
    session = worker.open(Cancellations(), results.put)
    worker.reply_in_the_making(+1)
    worker.submit(session, _request(1, 1, final=False))
    worker.submit(session, _request(2, 2, final=True))
    assert _texts(results, 1) == [(2, "1 2")]
    worker.reply_in_the_making(-1)
    assert _texts(results, 1) == [(1, "1 2")]
    worker.stop()

"""Worker threads of the listening stages: VAD, turn detection and STT."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from speech_to_speech.errors import Cancelled, SpeechToSpeechError
from speech_to_speech.runtime.tasks import Cancellations, Deliver
from speech_to_speech.stage_types import (
    DetectSpeechRequest,
    PredictTurnEndRequest,
    Samples,
    SpeechProbability,
    StageFailure,
    TranscribeRequest,
    TranscriptResult,
    TurnEndProbability,
)
from speech_to_speech.STT.base import RecognitionStream, SpeechToText
from speech_to_speech.VAD.base import TurnDetector, VoiceActivityDetector, VoiceActivityState

logger = logging.getLogger(__name__)

PARTIAL_WAITS_AT_MOST_S = 2.0
"""A partial transcript yields to replies being made, but not for ever."""


def failure_message(error: Exception) -> str:
    """One line for the client; what is not ours is named by its type."""
    if isinstance(error, SpeechToSpeechError):
        return str(error)
    logger.exception("a stage failed", exc_info=error)
    return f"{type(error).__name__}: {str(error)[:200]}"


@dataclass(eq=False)
class VADSession:
    """One session's frames on their way to the detector."""

    state: VoiceActivityState
    deliver: Deliver
    pending: deque[DetectSpeechRequest] = field(default_factory=deque)
    closed: bool = False


GATHER_S = 0.004
"""Least time between the beginnings of two batches of VAD frames. One session never waits for it, its frames are 32 ms
apart; the frames of many come in batches instead of waking the thread one by one."""


class VADWorker:
    """Runs the detector on one frame of every waiting session at a time."""

    def __init__(self, detector: VoiceActivityDetector) -> None:
        self._detector = detector
        self._waiting: dict[int, VADSession] = {}
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="vad", daemon=True)
        self._thread.start()

    def open(self, deliver: Deliver) -> VADSession:
        """A session that has heard nothing."""
        return VADSession(self._detector.new_state(), deliver)

    def submit(self, session: VADSession, request: DetectSpeechRequest) -> None:
        """Judge one more frame of `session`."""
        with self._changed:
            session.pending.append(request)
            self._waiting[id(session)] = session
            self._changed.notify()

    def close(self, session: VADSession) -> None:
        """The session is over."""
        with self._changed:
            session.closed = True
            session.pending.clear()
            self._waiting.pop(id(session), None)

    def stop(self) -> None:
        """End the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(timeout=2)

    def _run(self) -> None:
        began = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopped)
            time.sleep(max(0.0, began + GATHER_S - time.monotonic()))
            began = time.monotonic()
            for batch in self._take_batches():
                self._judge([(session, request) for session, request in batch if not session.closed])
            if self._stopped:
                return

    def _take_batches(self) -> list[list[tuple[VADSession, DetectSpeechRequest]]]:
        """All waiting frames: the oldest of every session, then the second ones, and so on."""
        batches = []
        with self._changed:
            waiting = [] if self._stopped else list(self._waiting.values())
            self._waiting.clear()
            while waiting:
                batches.append([(session, session.pending.popleft()) for session in waiting])
                waiting = [session for session in waiting if session.pending]
        return batches

    def _judge(self, batch: list[tuple[VADSession, DetectSpeechRequest]]) -> None:
        if not batch:
            return
        try:
            frames = np.stack([request.samples for _, request in batch])
            probabilities = self._detector.detect(frames, [session.state for session, _ in batch])
        except Exception as error:
            for session, _ in batch:
                session.deliver(StageFailure(0, "vad", failure_message(error)))
            return
        for (session, request), probability in zip(batch, probabilities, strict=True):
            if not session.closed:
                session.deliver(SpeechProbability(request.index, float(probability)))


@dataclass(frozen=True, eq=False)
class _Question:
    request: PredictTurnEndRequest
    cancellations: Cancellations
    deliver: Deliver


class TurnWorker:
    """Runs the turn detector on all waiting turns at once."""

    def __init__(self, detector: TurnDetector) -> None:
        self._detector = detector
        self._waiting: list[_Question] = []
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="turn", daemon=True)
        self._thread.start()

    def submit(self, request: PredictTurnEndRequest, cancellations: Cancellations, deliver: Deliver) -> None:
        """Judge one turn."""
        with self._changed:
            self._waiting.append(_Question(request, cancellations, deliver))
            self._changed.notify()

    def stop(self) -> None:
        """End the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(timeout=2)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopped)
                if self._stopped:
                    return
                batch, self._waiting = self._waiting, []
            batch = [question for question in batch if not _is_cancelled(question)]
            if batch:
                self._judge(batch)

    def _judge(self, batch: list[_Question]) -> None:
        try:
            probabilities = self._detector.predict([question.request.samples for question in batch])
        except Exception as error:
            for question in batch:
                question.deliver(StageFailure(question.request.token, "turn", failure_message(error)))
            return
        for question, probability in zip(batch, probabilities, strict=True):
            question.deliver(TurnEndProbability(question.request.token, probability))


def _is_cancelled(question: _Question) -> bool:
    return question.cancellations.is_cancelled(question.request.token)


@dataclass(eq=False)
class _Utterance:
    """An utterance in the recogniser, and the audio it has still to be given.

    Requests overtake each other, their audio must not: it queues here in the order of submission.
    """

    stream: RecognitionStream
    audio: deque[Samples] = field(default_factory=deque)


@dataclass(eq=False)
class STTSession:
    """One session's utterances in the recogniser."""

    cancellations: Cancellations
    deliver: Deliver
    utterances: dict[int, _Utterance] = field(default_factory=dict)


@dataclass(order=True)
class _Decode:
    priority: int
    order: int
    request: TranscribeRequest = field(compare=False)
    session: STTSession = field(compare=False)


class STTWorker:
    """Decodes one utterance at a time: final transcripts before partial ones, a running partial gives way."""

    def __init__(self, recogniser: SpeechToText) -> None:
        self._recogniser = recogniser
        self._queue: list[_Decode] = []
        self._order = itertools.count()
        self._finals_waiting = 0
        self._replies_in_the_making = 0
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="stt", daemon=True)
        self._thread.start()

    def open(self, cancellations: Cancellations, deliver: Deliver) -> STTSession:
        """A session without utterances."""
        return STTSession(cancellations, deliver)

    def submit(self, session: STTSession, request: TranscribeRequest) -> None:
        """Decode, after everything more urgent."""
        with self._changed:
            utterance = session.utterances.get(request.utterance)
            if utterance is None:
                stream = self._recogniser.open(language=request.language, prompt=request.prompt)
                utterance = session.utterances[request.utterance] = _Utterance(stream)
            utterance.audio.append(request.samples)
            self._enqueue(session, request)

    def forget(self, session: STTSession, utterance: int) -> None:
        """The utterance will not be decoded again."""
        with self._changed:
            session.utterances.pop(utterance, None)

    def reply_in_the_making(self, change: int) -> None:
        """+1 when a reply is begun, -1 when it is made: partial transcripts wait in between."""
        with self._changed:
            self._replies_in_the_making += change
            self._changed.notify()

    def stop(self) -> None:
        """End the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(timeout=2)

    def _enqueue(self, session: STTSession, request: TranscribeRequest) -> None:
        self._finals_waiting += request.final
        priority = 0 if request.final else 1
        heapq.heappush(self._queue, _Decode(priority, next(self._order), request, session))
        self._changed.notify()

    def _run(self) -> None:
        while True:
            decode = self._next()
            if decode is None:
                return
            self._decode(decode)

    def _next(self) -> _Decode | None:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._stopped)
            if self._queue and not self._queue[0].request.final:
                self._changed.wait_for(self._partial_may_run, timeout=PARTIAL_WAITS_AT_MOST_S)
            if self._stopped:
                return None
            decode = heapq.heappop(self._queue)
            self._finals_waiting -= decode.request.final
            return decode

    def _partial_may_run(self) -> bool:
        return self._stopped or self._finals_waiting > 0 or self._replies_in_the_making == 0

    def _decode(self, decode: _Decode) -> None:
        request, session = decode.request, decode.session

        def is_cancelled() -> bool:
            return session.cancellations.is_cancelled(request.token) or (not request.final and self._finals_waiting > 0)

        utterance = session.utterances.get(request.utterance)
        if utterance is None:
            return
        try:
            if is_cancelled():
                raise Cancelled
            while utterance.audio:
                utterance.stream.accept(utterance.audio.popleft())
            transcript = utterance.stream.decode(final=request.final, is_cancelled=is_cancelled)
        except Cancelled:
            self._gave_way(session, request)
        except Exception as error:
            session.deliver(StageFailure(request.token, "stt", failure_message(error)))
        else:
            session.deliver(TranscriptResult(request.token, transcript))

    def _gave_way(self, session: STTSession, request: TranscribeRequest) -> None:
        """A partial that made room for another session's final transcript is tried again."""
        if session.cancellations.is_cancelled(request.token):
            session.cancellations.forget(request.token)
            return
        with self._changed:
            self._enqueue(session, request)

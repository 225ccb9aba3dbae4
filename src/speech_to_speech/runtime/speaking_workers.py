"""Worker threads of the speaking stages: LLM and TTS."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from speech_to_speech.errors import Cancelled
from speech_to_speech.LLM.base import LanguageModel
from speech_to_speech.runtime.listening_workers import failure_message
from speech_to_speech.runtime.tasks import Cancellations, Deliver
from speech_to_speech.stage_types import (
    GenerateRequest,
    GenerationResult,
    SpeakRequest,
    SpeechDone,
    SpeechResult,
    StageFailure,
)
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.TTS.speech_feed import SpeechFeed

MAXIMUM_GENERATIONS = 64
"""Generations in flight, those that wait for a slot of the model included."""


class LLMWorkers:
    """One thread per generation in flight; the model itself decides whose turn it is."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._threads = ThreadPoolExecutor(MAXIMUM_GENERATIONS, thread_name_prefix="llm")

    def submit(self, request: GenerateRequest, cancellations: Cancellations, deliver: Deliver) -> None:
        """Generate, or prefill."""
        self._threads.submit(self._generate, request, cancellations, deliver)

    def release(self, conversation: str) -> None:
        """The conversation has ended."""
        self._model.release(conversation)

    def stop(self) -> None:
        """Wait for the generations in flight (cancelled by their sessions) and free the model."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._model.close()

    def _generate(self, request: GenerateRequest, cancellations: Cancellations, deliver: Deliver) -> None:
        token = request.token

        def is_cancelled() -> bool:
            return cancellations.is_cancelled(token)

        try:
            if not is_cancelled():
                for piece in self._model.generate(request, is_cancelled):
                    deliver(GenerationResult(token, piece))
        except Cancelled:
            pass
        except Exception as error:
            deliver(StageFailure(token, "llm", failure_message(error)))
        if request.prefill_only:  # a reply's token is looked at by the synthesiser, too
            cancellations.forget(token)


@dataclass(eq=False)
class _Speech:
    """One reply being spoken."""

    token: int
    feed: SpeechFeed
    cancellations: Cancellations
    deliver: Deliver
    speculative: bool
    deadline: float
    queued: bool = False
    """Stands in the queue, or is being spoken."""
    fresh: bool = False
    """Text came since the worker last looked."""
    done: bool = False

    def is_cancelled(self) -> bool:
        return self.cancellations.is_cancelled(self.token)


@dataclass(eq=False)
class TTSSession:
    """One session's replies in the synthesiser."""

    cancellations: Cancellations
    deliver: Deliver
    speeches: dict[int, _Speech] = field(default_factory=dict)


class TTSWorker:
    """Speaks one clause at a time, of the reply whose listener runs out of audio first."""

    def __init__(self, synthesizer: TextToSpeech) -> None:
        self._synthesizer = synthesizer
        self._queue: list[tuple[bool, float, int, _Speech]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="tts", daemon=True)
        self._thread.start()

    def open(self, cancellations: Cancellations, deliver: Deliver) -> TTSSession:
        """A session in which nothing is spoken."""
        return TTSSession(cancellations, deliver)

    def submit(self, session: TTSSession, request: SpeakRequest) -> None:
        """Speak more text of a reply."""
        with self._changed:
            speech = session.speeches.get(request.token)
            if speech is None:
                feed = SpeechFeed(self._synthesizer, voice=request.voice, speed=request.speed)
                speech = _Speech(
                    request.token, feed, session.cancellations, session.deliver, request.speculative, request.deadline
                )
                session.speeches[request.token] = speech
            speech.speculative = request.speculative
            speech.feed.add(request.text, request.end)
            speech.fresh = True
            if request.end:
                del session.speeches[request.token]
            self._enqueue(speech)

    def cancel(self, session: TTSSession, token: int) -> None:
        """The reply is not wanted any more."""
        with self._changed:
            session.speeches.pop(token, None)

    def stop(self) -> None:
        """End the thread after the clause being spoken."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(timeout=2)

    def _enqueue(self, speech: _Speech) -> None:
        if not speech.queued and not speech.done:
            speech.queued = True
            heapq.heappush(self._queue, (speech.speculative, speech.deadline, next(self._order), speech))
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopped)
                if self._stopped:
                    return
                speech = heapq.heappop(self._queue)[-1]
            more = self._speak_next(speech)
            with self._changed:
                speech.queued = False
                if more or speech.fresh:
                    self._enqueue(speech)

    def _speak_next(self, speech: _Speech) -> bool:
        """Speak one clause; true when the next one may follow at once."""
        if speech.is_cancelled():
            speech.done = True
            return False
        with self._changed:
            speech.fresh = False
            clause = speech.feed.next_clause()
        try:
            if clause is not None:
                for piece in speech.feed.speak(clause, speech.is_cancelled):
                    duration = len(piece.samples) / piece.sample_rate
                    speech.deadline = max(speech.deadline, time.monotonic()) + duration
                    speech.deliver(SpeechResult(speech.token, piece))
        except Cancelled:
            speech.done = True
            return False
        except Exception as error:
            speech.done = True
            speech.deliver(StageFailure(speech.token, "tts", failure_message(error)))
            return False
        with self._changed:
            if speech.feed.done:
                speech.done = True
                speech.deliver(SpeechDone(speech.token))
        return clause is not None and not speech.done

"""The inline runtime: every model in worker threads of this process."""

from __future__ import annotations

import threading

from speech_to_speech.runtime.backends import Stages
from speech_to_speech.runtime.listening_workers import STTWorker, TurnWorker, VADWorker
from speech_to_speech.runtime.speaking_workers import LLMWorkers, TTSWorker
from speech_to_speech.runtime.tasks import Cancellations, Deliver
from speech_to_speech.stage_types import (
    CancelRequest,
    DetectSpeechRequest,
    ForgetUtterance,
    GenerateRequest,
    GenerationDone,
    GenerationResult,
    PredictTurnEndRequest,
    SpeakRequest,
    StageFailure,
    StageRequest,
    StageResult,
    TranscribeRequest,
)


class InlineRuntime:
    """Serves all sessions with one copy of each model. Thread-safe."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages
        self.vad = VADWorker(stages.vad)
        self.turn = TurnWorker(stages.turn)
        self.stt = STTWorker(stages.stt)
        self.llm = LLMWorkers(stages.llm)
        self.tts = TTSWorker(stages.tts)

    def open(self, name: str, deliver: Deliver) -> SessionWork:
        """A session's place in the queues. `name` is the one its `GenerateRequest`s carry as `conversation`."""
        return SessionWork(self, name, deliver)

    def close(self) -> None:
        """Stop the workers and free the models. Sessions must be closed before."""
        self.vad.stop()
        self.turn.stop()
        self.stt.stop()
        self.tts.stop()
        self.llm.stop()


class SessionWork:
    """What one session has in the runtime."""

    def __init__(self, runtime: InlineRuntime, name: str, deliver: Deliver) -> None:
        self._runtime = runtime
        self._name = name
        self._deliver_to_session = deliver
        self._cancellations = Cancellations()
        self._vad = runtime.vad.open(deliver)
        self._stt = runtime.stt.open(self._cancellations, self._deliver)
        self._tts = runtime.tts.open(self._cancellations, self._deliver)
        self._replies: set[int] = set()
        self._lock = threading.Lock()

    @property
    def waiting_frames(self) -> int:
        """VAD frames of this session not yet judged."""
        return len(self._vad.pending)

    def submit(self, request: StageRequest) -> None:
        """Hand a request to its stage; results come through the session's `deliver`, from any thread."""
        if isinstance(request, DetectSpeechRequest):
            self._runtime.vad.submit(self._vad, request)
        elif isinstance(request, PredictTurnEndRequest):
            self._runtime.turn.submit(request, self._cancellations, self._deliver)
        elif isinstance(request, TranscribeRequest):
            self._runtime.stt.submit(self._stt, request)
        elif isinstance(request, ForgetUtterance):
            self._runtime.stt.forget(self._stt, request.utterance)
        elif isinstance(request, GenerateRequest):
            self._generate(request)
        elif isinstance(request, SpeakRequest):
            self._runtime.tts.submit(self._tts, request)
        else:
            self._cancel(request)

    def close(self) -> None:
        """The session is over: nothing more is delivered, and everything it holds is freed."""
        self._cancellations.close()
        self._runtime.vad.close(self._vad)
        for token in list(self._replies):
            self._reply_made(token)
        self._runtime.llm.release(self._name)

    def _generate(self, request: GenerateRequest) -> None:
        if not request.prefill_only:
            with self._lock:
                self._replies.add(request.token)
            self._runtime.stt.reply_in_the_making(+1)
        self._runtime.llm.submit(request, self._cancellations, self._deliver)

    def _cancel(self, request: CancelRequest) -> None:
        self._cancellations.cancel(request.token)
        self._runtime.tts.cancel(self._tts, request.token)
        self._reply_made(request.token)

    def _deliver(self, result: StageResult) -> None:
        if isinstance(result, StageFailure) or (
            isinstance(result, GenerationResult) and isinstance(result.piece, GenerationDone)
        ):
            self._reply_made(result.token)
        self._deliver_to_session(result)

    def _reply_made(self, token: int) -> None:
        """Partial transcripts need not wait for this reply any longer. Called by workers and by the session."""
        with self._lock:
            if token not in self._replies:
                return
            self._replies.remove(token)
        self._runtime.stt.reply_in_the_making(-1)

"""A recorded trace played through the turn loop on a virtual clock: when would a policy have answered?"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from speech_to_speech.bench.scene_traces import Pause, Trace
from speech_to_speech.conversation.conversation import Conversation, ConversationInput, ConversationSettings
from speech_to_speech.conversation.events import InputCommitted, Output, ReplyOpened
from speech_to_speech.conversation.turn_detection import TurnDetection
from speech_to_speech.conversation.user_audio import CLIENT_RATE, to_ms
from speech_to_speech.stage_types import (
    RECOGNITION_RATE,
    VAD_FRAME_SAMPLES,
    DetectSpeechRequest,
    PredictTurnEndRequest,
    SpeechProbability,
    TranscribeRequest,
    Transcript,
    TranscriptResult,
    TurnEndProbability,
)

FRAME_S = VAD_FRAME_SAMPLES / RECOGNITION_RATE

_SILENT_PCM = bytes(2 * VAD_FRAME_SAMPLES * CLIENT_RATE // RECOGNITION_RATE)


@dataclass(frozen=True, slots=True)
class Replayed:
    """`cut_off`: the turn was committed before the user had finished.

    `wait_ms`: last voiced sample → the reply may be heard, as far as the policy is concerned (its turn is over and its
    transcript there); None when the turn was cut off or no reply came.
    """

    cut_off: bool
    wait_ms: float | None


def replay(trace: Trace, detection: TurnDetection) -> Replayed:
    """What `detection` makes of the scene."""
    return _Replay(trace, detection).run()


class _Replay:
    def __init__(self, trace: Trace, detection: TurnDetection) -> None:
        self._trace = trace
        ids = itertools.count(1)
        settings = ConversationSettings(turn_detection=detection)
        self._conversation = Conversation("replay", settings, lambda prefix: f"{prefix}_{next(ids)}")
        self._now = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._frames_heard = 0
        self._result: Replayed | None = None

    def run(self) -> Replayed:
        for index in range(len(self._trace.levels)):
            self._at((index + 1) * FRAME_S, self._hear)
        while self._heap and self._result is None:
            wakeup = self._conversation.next_wakeup(self._now)
            if wakeup is not None and wakeup < self._heap[0][0]:
                self._now = max(self._now, wakeup)
                self._conversation.advance(self._now)
            else:
                self._now, _, action = heapq.heappop(self._heap)
                action()
            self._drain()
        return self._result or Replayed(False, None)

    @property
    def _position(self) -> int:
        """Samples at 16 kHz that the conversation has heard."""
        return self._frames_heard * VAD_FRAME_SAMPLES

    def _at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (time, next(self._order), action))

    def _hear(self) -> None:
        """The next frame: a constant of its level, since nothing but its level is asked of the sound itself."""
        level = self._trace.levels[self._frames_heard]
        self._frames_heard += 1
        self._conversation.append_audio(_SILENT_PCM, np.full(VAD_FRAME_SAMPLES, level, np.float32))

    def _drain(self) -> None:
        outputs = self._conversation.take_outputs()
        while outputs and self._result is None:
            for output in outputs:
                self._take(output)
            outputs = self._conversation.take_outputs()

    def _take(self, output: Output) -> None:
        if isinstance(output, DetectSpeechRequest):
            probability = self._trace.probabilities[output.index]
            self._conversation.receive(SpeechProbability(output.index, probability), self._now)
        elif isinstance(output, PredictTurnEndRequest):
            self._predict(output.token)
        elif isinstance(output, TranscribeRequest):
            self._transcribe(output)
        elif isinstance(output, InputCommitted) and self._now * 1000 < self._trace.turn_end_ms:
            self._result = self._result or Replayed(True, None)
        elif isinstance(output, ReplyOpened):
            self._result = self._result or Replayed(False, self._now * 1000 - self._trace.turn_end_ms)

    def _predict(self, token: int) -> None:
        pause = self._pause(lambda pause: pause.voiced_end)
        assert pause is not None, "the turn detector is asked in pauses only"
        silence_ms = to_ms(self._position - pause.voiced_end)
        answer = [answer for answer in pause.answers if answer.silence_ms <= silence_ms][-1]
        self._later(answer.took_ms, TurnEndProbability(token, answer.p_complete))

    def _transcribe(self, request: TranscribeRequest) -> None:
        pause = self._pause(lambda pause: pause.audible_end)
        text, took_ms = (pause.text, pause.took_ms) if pause is not None else ("", self._trace.pauses[0].took_ms)
        self._later(took_ms, TranscriptResult(request.token, Transcript(text, "", request.final)))

    def _pause(self, begin: Callable[[Pause], int]) -> Pause | None:
        """The newest pause that has begun."""
        return next((pause for pause in reversed(self._trace.pauses) if begin(pause) <= self._position), None)

    def _later(self, delay_ms: float, result: ConversationInput) -> None:
        self._at(self._now + delay_ms / 1000, lambda: self._conversation.receive(result, self._now))

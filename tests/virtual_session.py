"""A Realtime session with scripted stages on a virtual clock: seconds of dialogue in milliseconds, without a sleep."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from server_event_oracle import check_order, check_server_event
from speech_to_speech.conversation.reply import Pacing, SpokenPiece
from speech_to_speech.realtime.client_events import decode_client_event
from speech_to_speech.realtime.session import RealtimeSession
from speech_to_speech.realtime.session_config import ServerVoices
from speech_to_speech.stage_types import (
    CancelRequest,
    ChatMessage,
    DetectSpeechRequest,
    ForgetUtterance,
    GenerateRequest,
    GenerationDone,
    GenerationResult,
    PredictTurnEndRequest,
    SpeakRequest,
    SpeechDone,
    SpeechProbability,
    StageFailure,
    TextDelta,
    TextToSpeechCapabilities,
    ToolCall,
    TranscribeRequest,
    Transcript,
    TranscriptResult,
    TurnEndProbability,
    Usage,
)
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.TTS.speech_feed import SpeechFeed

MS_PER_CHARACTER = 50
"""How long the scripted voice takes for one character of speakable text."""


@dataclass(frozen=True)
class Said:
    """The user speaks `text` from `start` to `end` (seconds); "" is a noise that the VAD takes for speech."""

    start: float
    end: float
    text: str


class ScriptedVoice(TextToSpeech):
    """A voice of constant speed: `MS_PER_CHARACTER` of a constant sound per character, at 24 kHz."""

    @classmethod
    def load(cls, arguments: Any, threads: int) -> ScriptedVoice:
        return cls()

    @property
    def capabilities(self) -> TextToSpeechCapabilities:
        return TextToSpeechCapabilities(streams_text=False, sample_rate=24_000, voices=("scripted",))

    def synthesize(self, text: str, *, voice: str, speed: float, is_cancelled: Any) -> Iterator[np.ndarray]:
        yield np.full(len(text) * MS_PER_CHARACTER * 24, 0.5, np.float32)


@dataclass
class VirtualSession:
    """Feeds a session and plays its stages. `answer` maps the prompt to the model's words (or to tool calls)."""

    script: list[Said] = field(default_factory=list)
    answer: Callable[[tuple[ChatMessage, ...]], str | list[ToolCall]] = lambda messages: "Paris."
    p_complete: Callable[[float], float] = lambda time: 0.95
    lead_ms: float = 200.0
    speculate: bool = True
    whole_answers: bool = False
    stt_s: float = 0.15
    first_token_s: float = 0.1
    token_s: float = 0.05
    tts_s: float = 0.05
    turn_s: float = 0.03
    fail: dict[str, int] = field(default_factory=dict)
    """Stage name → how many of its next requests fail."""

    def __post_init__(self) -> None:
        counter = itertools.count(1)
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.session = RealtimeSession(
            model="scripted",
            voices=ServerVoices(("scripted",)),
            wall=0.0,
            pacing=Pacing(self.lead_ms, self.speculate, self.whole_answers),
            new_id=lambda prefix: f"{prefix}_{next(counter)}",
        )
        self.events: list[tuple[float, dict[str, Any]]] = []
        self.requests: list[tuple[float, Any]] = []
        self.cancelled: set[int] = set()
        self._utterances: dict[int, np.ndarray] = {}
        self._feeds: dict[int, SpeechFeed] = {}
        self._sent_samples = 0
        self._wakeup: float | None = None
        self._drain()

    # --- what a test does -------------------------------------------------------------------------------------

    def send(self, event: dict[str, Any]) -> None:
        """A client event, as JSON over the wire would bring it."""
        import orjson

        self.session.receive_event(decode_client_event(orjson.dumps(event)), self.now)
        self._drain()

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Do something at a point in time."""
        heapq.heappush(self._heap, (time, next(self._order), action))

    def run(self, until: float, *, audio: bool = True) -> VirtualSession:
        """Let time pass; with `audio`, the user's microphone streams 20 ms frames."""
        if audio:
            self._schedule_audio(until)
        while True:
            wakeup = self.session.next_wakeup(self.now)
            due = self._heap[0][0] if self._heap else float("inf")
            if min(due, wakeup if wakeup is not None else float("inf")) > until:
                break
            if wakeup is not None and wakeup < due:
                self.now = max(self.now, wakeup)
                self.session.advance(self.now)
            else:
                time, _, action = heapq.heappop(self._heap)
                self.now = max(self.now, time)
                action()
            self._drain()
        self.now = until
        check_order([event for _, event in self.events])
        return self

    # --- what a test looks at ---------------------------------------------------------------------------------

    def types(self) -> list[str]:
        return [event["type"] for _, event in self.events]

    def of_type(self, name: str) -> list[dict[str, Any]]:
        return [event for _, event in self.events if event["type"] == name]

    def times(self, name: str) -> list[float]:
        return [time for time, event in self.events if event["type"] == name]

    def prompts(self) -> list[list[tuple[str, str]]]:
        """(role, text) of the messages of every generation that was not only a prefill."""
        return [
            [(message.role, message.text) for message in request.messages]
            for _, request in self.requests
            if isinstance(request, GenerateRequest) and not request.prefill_only
        ]

    def conversation(self) -> list[tuple[str, str]]:
        """(role, heard text) of the history's messages."""
        return [(item.role, item.heard_text) for item in self.session.history if item.kind == "message"]

    # --- the client's audio -----------------------------------------------------------------------------------

    def _schedule_audio(self, until: float) -> None:
        time = self._sent_samples / 24_000
        while time + 0.02 <= until:
            self.at(time + 0.02, self._send_frame)
            self._sent_samples += 480
            time = self._sent_samples / 24_000
        self._next_sample = getattr(self, "_next_sample", 0)

    def _send_frame(self) -> None:
        """20 ms of audio whose 16 kHz values are their own positions: so the scripted stages know what they hear."""
        start = self._next_sample
        self._next_sample += 320
        samples = np.arange(start, start + 320, dtype=np.float32)
        self.session.append_audio(bytes(960), samples)

    # --- the stages -------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        for output in self.session.take_outputs():
            if isinstance(output, dict):
                check_server_event(output)
                self.events.append((self.now, output))
            else:
                self.requests.append((self.now, output))
                self._serve(output)

    def _fails(self, stage: str, token: int) -> bool:
        if self.fail.get(stage, 0) <= 0:
            return False
        self.fail[stage] -= 1
        self._later(0.05, lambda: self._result(token, StageFailure(token, stage, f"{stage}: broken")))  # type: ignore[arg-type]
        return True

    def _later(self, delay: float, action: Callable[[], None]) -> None:
        self.at(self.now + delay, action)

    def _result(self, token: int, result: Any) -> None:
        """Deliver; results of cancelled work may come late, and are sent to see that they are dropped."""
        self.session.receive_result(result, self.now)

    def _serve(self, request: Any) -> None:
        if isinstance(request, DetectSpeechRequest):
            middle = float(request.samples[256]) / 16_000
            voiced = any(said.start <= middle < said.end for said in self.script)
            self.session.receive_result(SpeechProbability(request.index, 0.95 if voiced else 0.01), self.now)
            self._drain()
        elif isinstance(request, PredictTurnEndRequest):
            if not self._fails("turn", request.token):
                p = self.p_complete(self.now)
                token = request.token
                self._later(self.turn_s, lambda: self._result(token, TurnEndProbability(token, p)))
        elif isinstance(request, TranscribeRequest):
            self._transcribe(request)
        elif isinstance(request, GenerateRequest):
            self._generate(request)
        elif isinstance(request, SpeakRequest):
            self._speak(request)
        elif isinstance(request, CancelRequest):
            self.cancelled.add(request.token)
            self._feeds.pop(request.token, None)
        else:
            assert isinstance(request, ForgetUtterance)

    def _transcribe(self, request: TranscribeRequest) -> None:
        heard = self._utterances.get(request.utterance, np.zeros(0, np.float32))
        assert request.offset == len(heard), "the recogniser must get every sample once, in order"
        heard = self._utterances[request.utterance] = np.concatenate([heard, request.samples])
        if self._fails("stt", request.token):
            return
        text = self._words(float(heard[0]) / 16_000, float(heard[-1]) / 16_000) if len(heard) else ""
        stable = text if request.final else text.rpartition(" ")[0]
        result = TranscriptResult(request.token, Transcript(text, stable, request.final))
        self._later(self.stt_s, lambda: self._result(request.token, result))

    def _words(self, start: float, end: float) -> str:
        """What was said between two times; of a sentence heard in part, the words that fit."""
        words: list[str] = []
        for said in self.script:
            if said.end <= start or said.start >= end:
                continue
            spoken = said.text.split()
            share = min(1.0, (end - said.start + 0.05) / (said.end - said.start))
            words += spoken[: int(len(spoken) * share)] if share < 1.0 else spoken
        return " ".join(words)

    def _generate(self, request: GenerateRequest) -> None:
        token = request.token
        if request.prefill_only:
            self._later(0.2, lambda: self._result(token, GenerationResult(token, GenerationDone("stop"))))
            return
        if self._fails("llm", token):
            return
        answer = self.answer(request.messages)
        pieces: list[Any] = answer if isinstance(answer, list) else [TextDelta(word) for word in _with_spaces(answer)]
        delay = self.first_token_s
        for piece in pieces:
            self._later(delay, lambda piece=piece: self._result(token, GenerationResult(token, piece)))
            delay += self.token_s
        reason = "tool_calls" if isinstance(answer, list) else "stop"
        done = GenerationDone(reason, Usage(input_tokens=10, output_tokens=len(pieces)))  # type: ignore[arg-type]
        self._later(delay, lambda: self._result(token, GenerationResult(token, done)))

    def _speak(self, request: SpeakRequest) -> None:
        feed = self._feeds.get(request.token)
        if feed is None:
            if self._fails("tts", request.token):
                self._feeds[request.token] = SpeechFeed(ScriptedVoice())
                return
            feed = self._feeds[request.token] = SpeechFeed(ScriptedVoice())
        feed.add(request.text, request.end)
        while (clause := feed.next_clause()) is not None:
            for piece in feed.speak(clause, lambda: False):
                spoken = SpokenPiece(bytes(2 * len(piece.samples)), piece.text_start, piece.text_end, piece.clause_end)
                self._later(self.tts_s, lambda spoken=spoken: self._speech(request.token, spoken))
        if feed.done:
            self._later(self.tts_s, lambda: self._result(request.token, SpeechDone(request.token)))

    def _speech(self, token: int, piece: SpokenPiece) -> None:
        self.session.receive_speech(token, piece, self.now)


def _with_spaces(text: str) -> list[str]:
    words = text.split(" ")
    return [word if position == 0 else " " + word for position, word in enumerate(words)]

"""The turn loop: takes audio, stage results and the time; returns events and stage requests.

Who speaks is decided here; `listening` knows the user's turn, `speaking` the assistant's reply. Work done before the
end of a turn is certain stands behind the reply's gate and leaves no trace when the user goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from speech_to_speech.conversation.events import (
    InputCommitted,
    Output,
    SpeechStarted,
    SpeechStopped,
    StageFailed,
    TranscriptCompleted,
    TranscriptDelta,
    TranscriptFailed,
)
from speech_to_speech.conversation.history import ContentPart, History, Item
from speech_to_speech.conversation.interruption import (
    ASK_WORDS_AFTER_MS,
    CONFIRM_AFTER_MS,
    DISMISS_AFTER_S,
    takes_the_turn,
)
from speech_to_speech.conversation.listening import Listening, TranscriptionSettings
from speech_to_speech.conversation.read_ahead import ReadAhead
from speech_to_speech.conversation.reply import Pacing, Reply, ReplySettings, SpokenPiece
from speech_to_speech.conversation.speaking import Speaking
from speech_to_speech.conversation.timeline import TurnTimeline
from speech_to_speech.conversation.turn_detection import SemanticVAD, TurnDetection
from speech_to_speech.conversation.user_audio import from_ms, to_ms
from speech_to_speech.conversation.user_turn import UserTurn
from speech_to_speech.conversation.voice_activity import VoiceChange
from speech_to_speech.conversation.work import Work
from speech_to_speech.errors import InvalidRequestError
from speech_to_speech.stage_types import (
    RECOGNITION_RATE,
    VAD_FRAME_SAMPLES,
    ChatMessage,
    DetectSpeechRequest,
    GenerationResult,
    Samples,
    SpeechDone,
    SpeechProbability,
    StageFailure,
    Transcript,
    TranscriptResult,
    TurnEndProbability,
)

MINIMUM_COMMIT_MS = 100
"""The Realtime API refuses to commit less audio than this."""

MAXIMUM_BUFFER_MS = 600_000
"""Uncommitted audio a session may hold: ten minutes."""

ConversationInput: TypeAlias = (
    SpeechProbability | TurnEndProbability | TranscriptResult | GenerationResult | SpeechDone | StageFailure
)
"""Stage results as they are; synthesised audio comes through `receive_speech`, at the protocol's rate."""


@dataclass(slots=True)
class ConversationSettings:
    """What a client can change about a conversation."""

    turn_detection: TurnDetection | None = field(default_factory=SemanticVAD)
    reply: ReplySettings = field(default_factory=ReplySettings)
    report_transcripts: bool = False
    """The client asked for transcripts of the user's speech."""


class Conversation:
    """One conversation. `name` is what its requests to the language model carry as `conversation`."""

    def __init__(
        self, name: str, settings: ConversationSettings, new_id: Callable[[str], str], pacing: Pacing | None = None
    ) -> None:
        self.settings = settings
        self.history = History()
        self._new_id = new_id
        self._work = Work(self._unused_id)
        self._name = name
        self._pacing = pacing or Pacing()
        self._listening = Listening(self._work)
        self._speaking = Speaking(self._work, self.history, name, self._pacing)
        self._untranscribed: list[UserTurn] = []
        """Turns that have ended and whose transcript is still to come, oldest first."""
        self._reply_due = False
        """A reply is owed as soon as every transcript is there and no other reply is going on."""
        self._read_ahead = ReadAhead(self._work, name)
        self._last_turn = TurnTimeline()

    @property
    def frame_lacks(self) -> int:
        """Samples (16 kHz) until the next VAD frame is complete."""
        return self._listening.audio.frame_lacks

    # --- what the client does ---------------------------------------------------------------------------------

    def append_audio(self, pcm: bytes, samples: Samples) -> None:
        """The next audio of the user, as PCM16 at 24 kHz and as float32 at 16 kHz.

        Makes nothing due: what follows from it follows from the detector's answers.
        """
        if to_ms(self._listening.audio.end - self._listening.buffer_start) >= MAXIMUM_BUFFER_MS:
            raise InvalidRequestError(
                f"The input audio buffer is full: {MAXIMUM_BUFFER_MS // 60_000} minutes are uncommitted. "
                "Send input_audio_buffer.commit or input_audio_buffer.clear.",
                code="input_audio_buffer_full",
                param="audio",
            )
        for index, frame in self._listening.audio.append(pcm, samples):
            if self.settings.turn_detection is not None:
                self._work.emit(DetectSpeechRequest(index, frame))

    def commit(self, now: float) -> None:
        """The client ends the user's turn. Never makes a reply."""
        listening = self._listening
        turn = listening.turn
        start = listening.buffer_start if turn is None or not turn.announced else turn.start
        length = to_ms(listening.audio.end - max(start, listening.audio.start))
        if length < MINIMUM_COMMIT_MS:
            raise InvalidRequestError(
                "Error committing input audio buffer: buffer too small. Expected at least "
                f"{MINIMUM_COMMIT_MS}ms of audio, but buffer only has {length:.2f}ms of audio.",
                code="input_audio_buffer_commit_empty",
            )
        self._speaking_gate_drop()
        if turn is None or not turn.announced:
            self._discard_turn()
            listening.buffer_start = start
            turn = listening.begin_turn(start, announced=True)
        self._end_turn(turn, listening.audio.end, now)

    def clear_audio(self, now: float) -> None:
        """The client throws away what was not committed."""
        self._speaking_gate_drop()
        self._discard_turn()
        self._listening.voice.end()
        self._listening.buffer_start = self._listening.audio.end
        self._listening.audio.forget_before(self._listening.audio.end)
        self.advance(now)

    def create_reply(self, settings: ReplySettings, now: float) -> Reply:
        """The client asks for a reply to the conversation as it stands."""
        if self._speaking.is_busy:
            assert self._speaking.reply is not None
            raise InvalidRequestError(
                "Conversation already has an active response in progress: "
                f"{self._speaking.reply.id}. Wait until the response is finished before creating a new one.",
                code="conversation_already_has_active_response",
            )
        self._speaking_gate_drop()
        self._reply_due = False
        for turn in self._untranscribed:
            turn.wants_reply = False
        timeline = self._untranscribed[-1].timeline if self._untranscribed else TurnTimeline(last_voiced=now)
        timeline.mark("turn_end", now)
        reply = self._speaking.create(settings, timeline)
        self._speaking.open(now)
        self._start_due_work(now)
        return reply

    def cancel_reply(self, reply_id: str | None, now: float) -> None:
        """The client wants no more of the reply going on."""
        reply = self._speaking.reply
        if not self._speaking.is_busy or (reply_id is not None and reply is not None and reply.id != reply_id):
            raise InvalidRequestError(
                "Cancellation failed: no active response found", code="response_cancel_not_active"
            )
        self._speaking.cancel("client_cancelled", now)
        self.advance(now)

    def prefill(self) -> None:
        """Instructions or history changed: let the language model read them before they are needed."""
        self._speaking_gate_drop()
        if self._speaking.reply is None:
            self._read_ahead.request(self.history.messages(self.settings.reply.instructions), self.settings.reply)

    def configure(self, settings: ConversationSettings, transcription: tuple[str, str]) -> None:
        """The client changed the session; `transcription` is the language and the prompt of the recogniser."""
        if settings != self.settings:
            self._speaking_gate_drop()
        if settings.turn_detection is None and self.settings.turn_detection is not None:
            kept = self._listening.turn.start if self._listening.turn else self._listening.buffer_start
            self._discard_turn()
            self._listening.buffer_start = kept
        elif self.settings.turn_detection is None and settings.turn_detection is not None:
            self._listening.voice.end()
        self.settings = settings
        self._listening.settings = TranscriptionSettings(*transcription)

    def delete_item(self, item: Item) -> None:
        """The client takes an item out of the conversation."""
        self._speaking_gate_drop()
        self.history.delete(item)

    def truncate(self, part: ContentPart, heard_ms: int, now: float) -> None:
        """The client knows how much of `part` was heard; it may be more than our own estimate."""
        part.cut_ms = float(heard_ms)
        self._speaking.truncated(part, now)

    def is_stale(self, token: int) -> bool:
        """True for the token of work that nobody waits for."""
        return self._work.is_stale(token)

    def close(self) -> None:
        """The session is over: everything in flight is cancelled."""
        self._work.cancel_all()

    # --- what the stages bring --------------------------------------------------------------------------------

    def receive(self, result: ConversationInput, now: float) -> None:
        """Take a stage's result; a stale one is dropped here, and only here."""
        if isinstance(result, SpeechProbability):
            if not self._frame(result, now):
                return
        elif isinstance(result, StageFailure) and result.stage == "vad":
            self._work.emit(StageFailed(result.message))
        elif not self._work.is_stale(result.token):
            self._receive_live(result, now)
        self.advance(now)

    def receive_speech(self, token: int, piece: SpokenPiece, now: float) -> None:
        """Take synthesised audio, brought to the protocol's rate by the caller."""
        if not self._work.is_stale(token):
            self._speaking.spoke(piece, now)
        self.advance(now)

    # --- time -------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Do whatever is due at `now`."""
        turn = self._listening.turn
        if turn is not None and not turn.announced and now >= (turn.suspected_at or now) + DISMISS_AFTER_S:
            self._discard_turn()
        self._speaking.advance(now)
        self._start_due_work(now)
        self._speaking.measure(now)

    def next_wakeup(self, now: float) -> float | None:
        """When `advance` wants to be called again, if nothing else happens."""
        wakeup = self._speaking.next_wakeup(now)
        turn = self._listening.turn
        if turn is None or turn.announced or turn.suspected_at is None:
            return wakeup
        dismissed = max(now, turn.suspected_at + DISMISS_AFTER_S)
        return dismissed if wakeup is None else min(wakeup, dismissed)

    def take_outputs(self) -> list[Output]:
        """Events and requests since the last call, in order."""
        return self._work.take()

    # --- frames -----------------------------------------------------------------------------------------------

    def _frame(self, result: SpeechProbability, now: float) -> bool:
        """Take the detector's answer; false when it makes nothing due: nobody speaks."""
        detection = self.settings.turn_detection
        listening = self._listening
        if detection is None or (result.index + 1) * VAD_FRAME_SAMPLES <= listening.buffer_start:
            return False
        start = result.index * VAD_FRAME_SAMPLES
        level = listening.audio.level(start, start + VAD_FRAME_SAMPLES)
        change = listening.voice.frame(result.index, result.probability, detection.threshold, level)
        if change is VoiceChange.ONSET:
            self._onset(detection, now)
        turn = listening.turn
        if turn is None:
            listening.forget_old_audio(detection.prefix_padding_ms)
            return False
        if change is VoiceChange.PAUSE and (self._pacing.speculate or not turn.announced):
            listening.paused(turn)
            if listening.is_final(turn):
                self._speculate(turn)
        elif change is VoiceChange.RESUME:
            self._user_went_on(turn)
        if listening.voice.pausing:
            self._pausing(turn, detection, now)
        else:
            self._still_speaking(turn, now)
        if turn.announced and listening.turn is turn and listening.is_complete(turn, detection):
            self._turn_is_over(turn, now)
        return True

    def _onset(self, detection: TurnDetection, now: float) -> None:
        start = self._listening.voice.onset - from_ms(detection.prefix_padding_ms)
        suspect = detection.interrupt_response and self._speaking.is_audible(now)
        turn = self._listening.begin_turn(start, announced=not suspect)
        if suspect:
            turn.suspected_at = now
            self._speaking.paused = self._speaking.is_busy
            return
        self._announce(turn)
        if detection.interrupt_response and self._speaking.is_busy:
            self._speaking.interrupt(now)

    def _announce(self, turn: UserTurn) -> None:
        self._speaking_gate_drop()
        turn.announced = True
        self._work.emit(SpeechStarted(turn.item_id, to_ms(turn.start)))

    def _still_speaking(self, turn: UserTurn, now: float) -> None:
        listening = self._listening
        if not turn.announced:
            if to_ms(listening.voice.voiced_samples) >= CONFIRM_AFTER_MS:
                self._confirm_interruption(turn, now)
            elif listening.partial_is_due(turn, ASK_WORDS_AFTER_MS + to_ms(listening.voice.onset - turn.start)):
                listening.transcribe(turn, listening.voice.frame_end, final=False)
            return
        if self._speaking.reply is None and listening.partial_is_due(turn):
            listening.transcribe(turn, listening.voice.frame_end, final=listening.voice.is_quiet)

    def _pausing(self, turn: UserTurn, detection: TurnDetection, now: float) -> None:
        listening = self._listening
        if turn.announced and isinstance(detection, SemanticVAD):
            listening.ask_turn_detector(turn, detection)
        if not turn.announced:
            self._judge_interruption(turn, now)

    def _user_went_on(self, turn: UserTurn) -> None:
        self._listening.resumed(turn)
        if self._speaking.reply is not None and not self._speaking.is_busy:
            turn.timeline.discarded_replies += 1
            self._speaking.drop()

    # --- barge-in ---------------------------------------------------------------------------------------------

    def _confirm_interruption(self, turn: UserTurn, now: float) -> None:
        self._announce(turn)
        self._speaking.interrupt(now)

    def _judge_interruption(self, turn: UserTurn, now: float) -> None:
        """The suspected interruption has paused; its transcript, once there, decides."""
        if not self._listening.is_final(turn):
            return
        assert turn.transcript is not None
        if takes_the_turn(turn.transcript.text):
            self._confirm_interruption(turn, now)
        elif self._speaking.is_audible(now):
            self._listening.drop_turn(turn, self._listening.voice.frame_end)
            self._speaking.paused = False
        else:
            self._announce(turn)

    # --- the end of a turn ------------------------------------------------------------------------------------

    def _turn_is_over(self, turn: UserTurn, now: float) -> None:
        detection = self.settings.turn_detection
        assert detection is not None
        end = self._listening.voice.frame_end
        turn.timeline.last_voiced = self._listening.time_of(self._listening.voice.voiced_end, now)
        turn.timeline.mark("turn_end", now)
        self._work.emit(SpeechStopped(turn.item_id, to_ms(end)))
        turn.wants_reply = detection.create_response
        self._last_turn = turn.timeline
        self._end_turn(turn, end, now)
        self.advance(now)

    def _end_turn(self, turn: UserTurn, end: int, now: float) -> None:
        """The turn becomes an item; its transcript follows when it is there."""
        listening = self._listening
        part = ContentPart("input_audio", audio=bytearray(listening.audio.pcm(turn.start, end)))
        if turn.timeline.last_voiced is None:
            turn.timeline.last_voiced = now
        by_detection = listening.voice.speaking and listening.voice.pausing
        listening.end_turn(turn, end)
        if not by_detection or not self._covers(turn):
            listening.transcribe(turn, end, final=True)
        if self.history.find(turn.item_id) is not None:  # the client took the id that `speech_started` told it
            turn.item_id = self._work.new_id("item")
        item = Item(id=turn.item_id, role="user", content=[part])
        self.history.insert(item)
        self._work.emit(InputCommitted(item))
        if turn.decode is None:
            self._transcript_is_final(turn)
        else:
            self._untranscribed.append(turn)
        listening.audio.forget_before(listening.buffer_start)

    def _covers(self, turn: UserTurn) -> bool:
        in_flight = turn.decode.covers if turn.decode is not None else 0
        return max(in_flight, turn.transcript_covers) >= self._listening.voice.audible_end

    def _transcript_is_final(self, turn: UserTurn) -> None:
        """The transcript of an ended turn is there."""
        assert turn.transcript is not None and turn.end is not None
        item = self.history.find(turn.item_id)
        text = turn.transcript.text
        if item is not None:
            item.content[0].text = text
        self._listening.forget(turn)
        if self.settings.report_transcripts:
            self._report_stable(turn, text)
            self._work.emit(TranscriptCompleted(turn.item_id, text, (turn.end - turn.start) / RECOGNITION_RATE))
        if text:
            self._reply_due = self._reply_due or turn.wants_reply
        else:  # a cough, a slammed door: nobody asked anything
            self._speaking_gate_drop()

    # --- replies ----------------------------------------------------------------------------------------------

    def _start_due_work(self, now: float) -> None:
        """Start the reply that is owed, and the generation of one that waited for a transcript."""
        if self._untranscribed:
            return
        reply = self._speaking.reply
        if reply is not None and reply.opened and not reply.generation_started:
            self._read_ahead.cancel()
            self._speaking.generate(self.history.messages(reply.settings.instructions))
        elif self._reply_due and not self._speaking.is_busy and self._listening.turn is None:
            self._reply_due = False
            if reply is None:
                self._speaking.create(self.settings.reply, self._last_turn)
            self._speaking.open(now)
            self._start_due_work(now)

    def _speculate(self, turn: UserTurn) -> None:
        """The user pauses and the transcript is there: make the reply behind the gate."""
        if turn.transcript is not None and turn.transcript.text:
            self._answer_behind_gate(turn, turn.transcript.text)

    def _answer_behind_gate(self, turn: UserTurn, text: str) -> bool:
        detection = self.settings.turn_detection
        if detection is None or not detection.create_response or self._speaking.reply is not None:
            return False
        if self._untranscribed:
            return False
        self._read_ahead.cancel()
        self._speaking.create(self.settings.reply, turn.timeline)
        messages = self.history.messages(self.settings.reply.instructions)
        self._speaking.generate((*messages, ChatMessage("user", text)))
        return True

    def _unused_id(self, prefix: str) -> str:
        """A new id that no item has: clients choose ids, too."""
        while self.history.find(made := self._new_id(prefix)) is not None:
            pass
        return made

    def _speaking_gate_drop(self) -> None:
        if self._speaking.reply is not None and not self._speaking.is_busy:
            self._speaking.drop()

    def _discard_turn(self) -> None:
        turn = self._listening.turn
        if turn is not None:
            self._listening.drop_turn(turn, self._listening.voice.frame_end)
            self._speaking.paused = False

    # --- results ----------------------------------------------------------------------------------------------

    def _receive_live(
        self,
        result: TurnEndProbability | TranscriptResult | GenerationResult | SpeechDone | StageFailure,
        now: float,
    ) -> None:
        turn = self._turn_of(result.token)
        if self._read_ahead.ended(result.token):
            return
        if isinstance(result, StageFailure):
            self._failed(result, turn, now)
        elif isinstance(result, TranscriptResult) and turn is not None:
            self._transcript(turn, result, now)
        elif isinstance(result, TurnEndProbability) and turn is not None:
            self._listening.turn_detector_answered(turn, result.probability)
            detection = self.settings.turn_detection
            if detection is not None and self._listening.is_complete(turn, detection):
                self._turn_is_over(turn, now)
        elif isinstance(result, GenerationResult):
            self._speaking.generated(result.piece, now)
        elif isinstance(result, SpeechDone):
            self._speaking.speech_done(now)

    def _transcript(self, turn: UserTurn, result: TranscriptResult, now: float) -> None:
        listening = self._listening
        listening.transcript_arrived(turn, result.transcript)
        if turn.ended:
            turn.timeline.mark("transcript", now)
            self._untranscribed.remove(turn)
            self._transcript_is_final(turn)
            self._start_due_work(now)
            return
        if not turn.announced:
            self._transcript_of_suspect(turn, result.transcript.text, now)
        elif listening.voice.pausing and listening.is_final(turn):
            turn.timeline.transcript = now
            self._speculate(turn)
        else:
            self._partial(turn, result.transcript)

    def _transcript_of_suspect(self, turn: UserTurn, text: str, now: float) -> None:
        if self._listening.voice.pausing:
            self._judge_interruption(turn, now)
        elif takes_the_turn(text):
            self._confirm_interruption(turn, now)

    def _partial(self, turn: UserTurn, transcript: Transcript) -> None:
        if self.settings.report_transcripts and not transcript.final:  # a final one is stable only if it stays final
            self._report_stable(turn, transcript.stable)
        if not self._speaking.is_busy:
            settings = self.settings.reply
            self._read_ahead.user_said(turn, transcript, self.history.messages(settings.instructions), settings)

    def _report_stable(self, turn: UserTurn, stable: str) -> None:
        if len(stable) > len(turn.stable) and stable.startswith(turn.stable):
            self._work.emit(TranscriptDelta(turn.item_id, stable[len(turn.stable) :]))
            turn.stable = stable

    def _failed(self, failure: StageFailure, turn: UserTurn | None, now: float) -> None:
        if failure.stage == "stt" and turn is not None:
            self._transcription_failed(turn, failure.message, now)
        elif failure.stage == "turn" and turn is not None:
            self._listening.turn_detector_answered(turn, 0.5)
            self._work.emit(StageFailed(failure.message))
        elif self._speaking.reply is not None:
            self._speaking.failed(failure.message, now)

    def _transcription_failed(self, turn: UserTurn, message: str, now: float) -> None:
        assert turn.decode is not None
        self._work.end(turn.decode.token)
        turn.decode = None
        self._work.emit(StageFailed(message))
        if turn.ended:
            self._untranscribed.remove(turn)
            self._listening.forget(turn)
            self._work.emit(TranscriptFailed(turn.item_id, message))
            self._speaking_gate_drop()
            if self._speaking.is_busy and self._speaking.reply and not self._speaking.reply.generation_started:
                self._speaking.failed(message, now)
        elif not turn.announced:
            self._discard_turn()

    def _turn_of(self, token: int) -> UserTurn | None:
        turns = [*self._untranscribed, *([self._listening.turn] if self._listening.turn is not None else [])]
        for turn in turns:
            if (turn.decode is not None and turn.decode.token == token) or turn.question == token:
                return turn
        return None

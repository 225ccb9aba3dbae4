"""The user's side of the turn loop: from frames to a turn, its transcript and its end."""

from __future__ import annotations

from dataclasses import dataclass

from speech_to_speech.conversation.turn_detection import SemanticVAD, TurnDetection, required_silence_ms, with_words
from speech_to_speech.conversation.user_audio import UserAudio, from_ms, to_ms
from speech_to_speech.conversation.user_turn import Decode, UserTurn
from speech_to_speech.conversation.voice_activity import VoiceActivity
from speech_to_speech.conversation.work import Work
from speech_to_speech.stage_types import (
    RECOGNITION_RATE,
    ForgetUtterance,
    PredictTurnEndRequest,
    TranscribeRequest,
    Transcript,
)

ASK_TURN_DETECTOR_AT_MS = (96, 320, 640, 1280)
"""Silences at which the turn detector is asked; its answer firms up as the silence grows."""

WORTH_ASKING_MS = 100
"""The turn detector is not asked again when, by its last answer, the turn ends within this time."""

TURN_DETECTOR_WINDOW_MS = 8000
"""What the turn detector can see of a turn."""

PARTIAL_EVERY_MS = 160
"""New speech between two partial transcripts: on an idle machine one follows the other."""

IDLE_MEMORY_MS = 1000
"""Audio kept before an onset, on top of the prefix padding."""

FADING_SHARE = 0.18
"""Below this share of the loudest frame's level (-15 dB) a word may be ending: a decode begun now would miss its end,
and stand in the way of the one that hears it."""

MAXIMUM_TURN_MS = 300_000
"""A turn this long is ended: what follows is the next one."""


@dataclass(slots=True)
class TranscriptionSettings:
    """How the user's speech is transcribed: BCP-47 code or "" for automatic; text that biases the spelling."""

    language: str = ""
    prompt: str = ""


class Listening:
    """Owns the user's audio and turn. The conversation asks it and decides."""

    def __init__(self, work: Work) -> None:
        self.audio = UserAudio()
        self.voice = VoiceActivity()
        self.turn: UserTurn | None = None
        self.settings = TranscriptionSettings()
        self.buffer_start = 0
        """One past what was last committed or cleared."""
        self._work = work
        self._next_utterance = 1

    def time_of(self, position: int, now: float) -> float:
        """When the sample at `position` was spoken, taking the newest audio as spoken at `now`."""
        return now - (self.audio.end - position) / RECOGNITION_RATE

    def begin_turn(self, start: int, *, announced: bool) -> UserTurn:
        """A turn starts at `start`, or at the oldest audio that is still the user's to commit."""
        start = max(start, self.buffer_start, self.audio.start)
        self.turn = UserTurn(self._work.new_id("item"), self._next_utterance, start, announced, handed_over=start)
        self._next_utterance += 1
        return self.turn

    def transcribe(self, turn: UserTurn, end: int, *, final: bool) -> None:
        """Ask for the transcript of the turn up to `end`; a decode in flight is superseded."""
        if turn.decode is not None:
            self._work.cancel(turn.decode.token)
            turn.timeline.discarded_transcripts += 1
        turn.decode = Decode(self._work.begin(), final, end)
        self._work.emit(
            TranscribeRequest(
                turn.decode.token,
                turn.utterance,
                turn.handed_over - turn.start,
                self.audio.samples(turn.handed_over, end),
                final,
                self.settings.language,
                self.settings.prompt,
            )
        )
        turn.handed_over = max(turn.handed_over, end)

    def transcript_arrived(self, turn: UserTurn, transcript: Transcript) -> None:
        """The decode in flight came back."""
        assert turn.decode is not None
        self._work.end(turn.decode.token)
        turn.transcript, turn.transcript_covers = transcript, turn.decode.covers
        turn.decode = None

    def is_final(self, turn: UserTurn) -> bool:
        """True when the newest transcript heard everything there is to hear: no better one can come."""
        last = self.voice.audible_end if turn.end is None else min(self.voice.audible_end, turn.end)
        return turn.transcript is not None and turn.transcript_covers >= last

    def partial_is_due(self, turn: UserTurn, every_ms: float = PARTIAL_EVERY_MS) -> bool:
        """True when enough was said since the newest decode, or what was said may be all, and none is in flight."""
        if turn.decode is not None:
            return False
        unheard_ms = to_ms(self.voice.frame_end - max(turn.handed_over, turn.start))
        if self.voice.is_quiet:
            return turn.handed_over < self.voice.audible_end
        return unheard_ms >= every_ms and (self.voice.loudness >= FADING_SHARE or unheard_ms >= 3 * every_ms)

    def paused(self, turn: UserTurn) -> None:
        """The user pauses: what was said so far may be all."""
        awaited = turn.decode is not None and turn.decode.covers >= self.voice.audible_end
        if not awaited and not self.is_final(turn):
            self.transcribe(turn, self.voice.frame_end, final=True)

    def resumed(self, turn: UserTurn) -> None:
        """The user went on: answers about the pause are worth nothing.

        A decode in flight is let finish: where decodes take longer than the user's pauses lie apart, there would be
        no partial transcript at all.
        """
        self._work.cancel(turn.question)
        turn.question, turn.questions_asked, turn.p_complete = None, 0, None

    def ask_turn_detector(self, turn: UserTurn, detection: SemanticVAD) -> None:
        """Ask whether the turn is complete, when the silence has reached the next of the asking points.

        Not where the answer there is ends the turn at that point anyway: a call costs 30 to 70 ms of a core, which the
        reply being made needs.
        """
        if turn.questions_asked >= len(ASK_TURN_DETECTOR_AT_MS) or turn.question is not None:
            return
        next_point = ASK_TURN_DETECTOR_AT_MS[turn.questions_asked]
        if to_ms(self.voice.silence_samples) < next_point:
            return
        answered = turn.p_complete is not None
        if answered and required_silence_ms(detection, self._p_complete(turn)) <= next_point + WORTH_ASKING_MS:
            return
        turn.questions_asked += 1
        turn.question = self._work.begin()
        window = max(turn.start, self.voice.frame_end - from_ms(TURN_DETECTOR_WINDOW_MS))
        self._work.emit(PredictTurnEndRequest(turn.question, self.audio.samples(window, self.voice.frame_end)))

    def turn_detector_answered(self, turn: UserTurn, probability: float) -> None:
        """The turn detector's newest opinion."""
        assert turn.question is not None
        self._work.end(turn.question)
        turn.question, turn.p_complete = None, probability

    def is_complete(self, turn: UserTurn, detection: TurnDetection) -> bool:
        """True when the silence is long enough for the turn to be over."""
        if to_ms(self.voice.frame_end - turn.start) >= MAXIMUM_TURN_MS:
            return True
        if not self.voice.pausing:
            return False
        wait = required_silence_ms(detection, self._p_complete(turn))
        turn.timeline.required_silence_ms = round(wait)
        turn.timeline.turn_end_probability = turn.p_complete
        return to_ms(self.voice.silence_samples) >= wait

    def _p_complete(self, turn: UserTurn) -> float | None:
        words = turn.transcript.text if turn.transcript is not None and self.is_final(turn) else ""
        return with_words(turn.p_complete, words)

    def end_turn(self, turn: UserTurn, end: int) -> None:
        """The turn is over at `end`; what comes after it is new."""
        turn.end = end
        self.buffer_start = max(self.buffer_start, end)
        self._work.cancel(turn.question)
        turn.question = None
        self.voice.end()
        self.turn = None

    def drop_turn(self, turn: UserTurn, end: int) -> None:
        """The turn was no turn: nothing of it remains."""
        if turn.decode is not None:
            self._work.cancel(turn.decode.token)
            turn.decode = None
        self.forget(turn)
        self.end_turn(turn, end)

    def forget(self, turn: UserTurn) -> None:
        """No more decodes of this turn will come."""
        self._work.emit(ForgetUtterance(turn.utterance))

    def forget_old_audio(self, prefix_padding_ms: int) -> None:
        """While nobody speaks, keep only what the next turn may begin with."""
        if self.turn is None and not self.voice.speaking:
            keep = self.voice.frame_end - from_ms(prefix_padding_ms + IDLE_MEMORY_MS)
            self.buffer_start = max(self.buffer_start, keep)
            self.audio.forget_before(keep)

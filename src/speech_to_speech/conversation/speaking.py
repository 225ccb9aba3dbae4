"""The assistant's side of the turn loop: generation, sending and playback are three clocks."""

from __future__ import annotations

from speech_to_speech.conversation.events import (
    ReplyAudio,
    ReplyEnded,
    ReplyEndReason,
    ReplyItemAdded,
    ReplyItemDone,
    ReplyOpened,
    ReplyStatus,
    ReplyText,
    TurnMeasured,
)
from speech_to_speech.conversation.history import ContentPart, History, Item
from speech_to_speech.conversation.playback import PlaybackClock
from speech_to_speech.conversation.reply import Pacing, Reply, ReplySettings, SpokenPiece
from speech_to_speech.conversation.timeline import TurnTimeline
from speech_to_speech.conversation.work import Work
from speech_to_speech.stage_types import (
    ChatMessage,
    GenerateRequest,
    GenerationDone,
    GenerationPiece,
    SpeakRequest,
    TextDelta,
    ToolCall,
)

MINIMUM_LEAD_MS = 20.0
"""A client that gets its audio less than this ahead of its playback stutters."""

SEND_QUANTUM_MS = 100
"""Paced audio goes out in pieces of at least this much, where there is as much: fewer messages, little lag."""


class Speaking:
    """Makes one reply at a time, sends its audio at the pace it is told, knows what was heard."""

    def __init__(self, work: Work, history: History, conversation: str, pacing: Pacing) -> None:
        self.reply: Reply | None = None
        self.paused = False
        self._work = work
        self._history = history
        self._conversation = conversation
        self._pacing = pacing
        self._lead_ms = max(pacing.lead_ms, MINIMUM_LEAD_MS) if pacing.lead_ms > 0 else 0.0
        self._quantum_ms = min(SEND_QUANTUM_MS, self._lead_ms / 2)
        self._clock = PlaybackClock()
        self._playing: ContentPart | None = None
        self._playing_timeline: TurnTimeline | None = None

    # --- making -----------------------------------------------------------------------------------------------

    def create(self, settings: ReplySettings, timeline: TurnTimeline) -> Reply:
        """A new reply, held behind the gate, with nothing asked of the model yet."""
        self.reply = Reply(self._work.new_id("resp"), self._work.begin(), settings, timeline)
        return self.reply

    def generate(self, messages: tuple[ChatMessage, ...]) -> None:
        """Ask the model for the reply's text."""
        reply = self._active()
        reply.generation_started = True
        settings = reply.settings
        self._work.emit(
            GenerateRequest(
                reply.token,
                self._conversation,
                messages,
                tools=settings.tools,
                tool_choice=settings.tool_choice,
                max_tokens=settings.max_tokens,
                speculative=not reply.opened,
            )
        )

    def generated(self, piece: GenerationPiece, now: float) -> None:
        """The model brought the next piece."""
        reply = self._active()
        if isinstance(piece, TextDelta):
            reply.timeline.mark("first_token", now)
            reply.text += piece.text
            self._speak(piece.text, end=False, now=now)
        elif isinstance(piece, ToolCall):
            reply.calls.append(piece)
        else:
            self._generation_ended(piece, now)
        self.advance(now)

    def spoke(self, piece: SpokenPiece, now: float) -> None:
        """The synthesiser brought the next audio."""
        reply = self._active()
        reply.timeline.mark("first_audio", now)
        reply.audio.append(piece)
        reply.spoken.add(piece.text_start, piece.text_end, piece.duration_ms, clause_end=piece.clause_end)
        self.advance(now)

    def speech_done(self, now: float) -> None:
        """The synthesiser has spoken all text."""
        self._active().speech_done = True
        self.advance(now)

    def failed(self, message: str, now: float) -> None:
        """A stage failed: an open reply ends here, a held one when its gate opens."""
        self._active().error = message
        self.advance(now)

    # --- the gate ---------------------------------------------------------------------------------------------

    def open(self, now: float) -> None:
        """The reply becomes real."""
        reply = self._active()
        reply.opened = True
        self._work.emit(ReplyOpened(reply))
        self.advance(now)

    def drop(self) -> None:
        """The user went on: a held reply vanishes without a trace."""
        if self.reply is not None:
            self._work.cancel(self.reply.token)
            self.reply.timeline.forget_reply()
            self.reply = None

    # --- sending ----------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Send whatever is due."""
        reply = self.reply
        if reply is None or not reply.opened:
            return
        if reply.error:
            self._end(reply, "failed", now, error=reply.error)
            return
        self._announce(reply)
        if self._may_send(reply):
            self._send_audio(reply, now)
        if reply.finished_making:
            self._complete(reply, now)

    def next_wakeup(self, now: float) -> float | None:
        """When `advance` wants to be called again, if nothing else happens."""
        reply = self.reply
        if reply is None:
            return max(now, self._clock.ends_at) if self._playing_timeline is not None else None
        if not reply.audio or self._lead_ms == 0 or not self._may_send(reply):
            return None
        return max(now, self._clock.ends_at - max(0.0, self._lead_ms - self._quantum_ms) / 1000)

    def measure(self, now: float) -> None:
        """Close the timeline of a reply that has been played to its end."""
        if self._playing_timeline is not None and self.reply is None and self._clock.ends_at <= now:
            self._finish_timeline(self._clock.ends_at)

    # --- what the listener hears ------------------------------------------------------------------------------

    def is_audible(self, now: float) -> bool:
        """True while the listener hears the assistant, or would if nothing had been paused."""
        if self._clock.ahead_ms(now) > 0:
            return True
        return self.paused or bool(self.reply and self.reply.opened and self._clock.sent_ms > 0 and self.reply.audio)

    @property
    def is_busy(self) -> bool:
        """True while a reply that is real has not ended."""
        return self.reply is not None and self.reply.opened

    def interrupt(self, now: float) -> None:
        """The user took over: whatever was made or sent beyond the last heard word is cut."""
        self.paused = False
        self._cut_at_heard(now)
        if self.is_busy:
            self.cancel("turn_detected", now)
        else:
            self.drop()
            self._finish_timeline(now)

    def cancel(self, reason: ReplyEndReason, now: float) -> None:
        """End the open reply; the history keeps what was heard of it."""
        reply = self._active()
        self._work.cancel(reply.token)
        self._cut_at_heard(now)
        self._end(reply, "cancelled", now, reason=reason)

    def truncated(self, part: ContentPart, now: float) -> None:
        """The client has stopped playing `part`."""
        if part is self._playing and (self.reply is None or self.reply.part is not part):
            self._clock.flush(now)
            self._finish_timeline(now)

    # --- inside -----------------------------------------------------------------------------------------------

    def _may_send(self, reply: Reply) -> bool:
        held_back = self._pacing.whole_answers and not reply.speech_done
        return reply.opened and not self.paused and not held_back

    def _active(self) -> Reply:
        assert self.reply is not None
        return self.reply

    def _speak(self, text: str, *, end: bool, now: float) -> None:
        reply = self._active()
        if not reply.settings.spoken:
            return
        reply.timeline.mark("first_text", now)
        self._work.emit(
            SpeakRequest(
                reply.token,
                text,
                end,
                voice=reply.settings.voice,
                speed=reply.settings.speed,
                speculative=not reply.opened,
                deadline=max(now, self._clock.ends_at),
            )
        )

    def _generation_ended(self, done: GenerationDone, now: float) -> None:
        reply = self._active()
        reply.generation = done
        if reply.settings.spoken and reply.text:
            self._speak("", end=True, now=now)
        else:
            reply.speech_done = True

    def _announce(self, reply: Reply) -> None:
        delta = reply.text[reply.announced_text :]
        if delta:
            item = self._message(reply)
            reply.announced_text = len(reply.text)
            item.content[0].text = reply.spoken.text = reply.text
            self._work.emit(ReplyText(reply, item, delta))
        for call in reply.calls[reply.announced_calls :]:
            self._announce_call(reply, call)
        reply.announced_calls = len(reply.calls)

    def _message(self, reply: Reply) -> Item:
        if reply.message is None:
            reply.message = reply.new_message(self._work.new_id("item"))
            self._history.insert(reply.message)
            reply.items.append(reply.message)
            self._work.emit(ReplyItemAdded(reply, reply.message))
        return reply.message

    def _announce_call(self, reply: Reply, call: ToolCall) -> None:
        item = Item(
            id=self._work.new_id("item"),
            kind="function_call",
            status="in_progress",
            name=call.name,
            call_id=call.call_id,
            arguments=call.arguments,
        )
        self._history.insert(item)
        reply.items.append(item)
        self._work.emit(ReplyItemAdded(reply, item))
        item.status = "completed"
        self._work.emit(ReplyItemDone(reply, item, call))

    def _send_audio(self, reply: Reply, now: float) -> None:
        while reply.audio:
            piece = reply.audio[0]
            allowed = piece.duration_ms
            if self._lead_ms > 0:
                room = self._lead_ms - self._clock.ahead_ms(now)
                if room < self._quantum_ms - 0.5:
                    return
                allowed = min(allowed, room)
            reply.audio.popleft()
            piece, rest = piece.split(allowed)
            if rest is not None:
                reply.audio.appendleft(rest)
            self._send_piece(reply, piece, now)

    def _send_piece(self, reply: Reply, piece: SpokenPiece, now: float) -> None:
        item = self._message(reply)
        part = item.content[0]
        if part is not self._playing:
            self._finish_timeline(now)
            self._playing, self._playing_timeline = part, reply.timeline
            self._clock.reset()
        part.audio += piece.pcm
        self._clock.send(piece.duration_ms, now)
        if piece.pcm:
            reply.timeline.mark("first_audible", now)
            self._work.emit(ReplyAudio(reply, item, piece.pcm))

    def _complete(self, reply: Reply, now: float) -> None:
        assert reply.generation is not None
        self._work.end(reply.token)
        if reply.generation.reason == "length":
            self._end(reply, "incomplete", now, reason="max_output_tokens")
        else:
            self._end(reply, "completed", now)

    def _end(
        self, reply: Reply, status: ReplyStatus, now: float, *, reason: ReplyEndReason = "", error: str = ""
    ) -> None:
        self._work.cancel(reply.token)
        reply.ended = True
        reply.audio.clear()
        self.reply = None
        self.paused = False
        if reply.message is not None:
            reply.message.status = "completed" if status == "completed" else "incomplete"
            if status == "failed" and reply.part is not None and reply.part.spoken is not None:
                reply.part.cut_ms = reply.part.audio_ms
            self._work.emit(ReplyItemDone(reply, reply.message))
        self._work.emit(ReplyEnded(reply, status, reason, error))
        if self._playing is None or self._playing is not reply.part:
            self._work.emit(TurnMeasured(reply.timeline))

    def _cut_at_heard(self, now: float) -> None:
        current = self.reply.part if self.reply is not None else None
        if self._playing is not None and (self._playing is current or self._clock.ahead_ms(now) > 0):
            self._playing.cut_ms = self._clock.heard_ms(now)
        if current is not None and current is not self._playing and current.spoken is not None:
            current.cut_ms = 0.0
        self._clock.flush(now)

    def _finish_timeline(self, ended_at: float) -> None:
        if self._playing_timeline is not None:
            self._playing_timeline.mark("playback_end", ended_at)
            self._work.emit(TurnMeasured(self._playing_timeline))
        self._playing = self._playing_timeline = None

"""One Realtime session, sans-I/O: client events, stage results and the time in; server events and requests out."""

from __future__ import annotations

from collections.abc import Callable
from random import getrandbits
from typing import Any, TypeAlias

from speech_to_speech.conversation.conversation import Conversation, ConversationInput
from speech_to_speech.conversation.events import (
    ConversationEvent,
    InputCommitted,
    ReplyAudio,
    ReplyEnded,
    ReplyItemAdded,
    ReplyItemDone,
    ReplyOpened,
    ReplyText,
    SpeechStarted,
    SpeechStopped,
    StageFailed,
    TranscriptCompleted,
    TranscriptDelta,
    TranscriptFailed,
    TurnMeasured,
)
from speech_to_speech.conversation.history import History, Item
from speech_to_speech.conversation.reply import Pacing, SpokenPiece
from speech_to_speech.conversation.timeline import TurnTimeline
from speech_to_speech.errors import InvalidRequestError
from speech_to_speech.realtime.client_events import (
    AnyClientEvent,
    ConversationItemCreate,
    ConversationItemDelete,
    ConversationItemRetrieve,
    ConversationItemTruncate,
    InputAudioBufferAppend,
    InputAudioBufferClear,
    InputAudioBufferCommit,
    MalformedEventError,
    OutputAudioBufferClear,
    ResponseCancel,
    ResponseCreate,
    SessionUpdate,
)
from speech_to_speech.realtime.error_codes import STAGE_FAILURE, error_type_and_code
from speech_to_speech.realtime.items import item_from_client, item_json
from speech_to_speech.realtime.responses import Responses
from speech_to_speech.realtime.server_events import ServerEvent, error_event
from speech_to_speech.realtime.session_config import (
    Json,
    ServerVoices,
    conversation_settings,
    default_session,
    reply_settings,
    response_session,
    updated_session,
)
from speech_to_speech.stage_types import (
    CancelRequest,
    DetectSpeechRequest,
    ForgetUtterance,
    GenerateRequest,
    PredictTurnEndRequest,
    Samples,
    SpeakRequest,
    StageRequest,
    TranscribeRequest,
)

SESSION_SECONDS = 3600
"""How long a session may last, as the hosted API has it."""

TRUNCATE_TOLERANCE_MS = 32
"""A truncation this far beyond the end of an item's audio is taken as its end: stock clients round up."""

_REPLY_EVENTS = (ReplyOpened, ReplyItemAdded, ReplyText, ReplyAudio, ReplyItemDone, ReplyEnded)
_REQUESTS = (
    DetectSpeechRequest,
    PredictTurnEndRequest,
    TranscribeRequest,
    ForgetUtterance,
    GenerateRequest,
    SpeakRequest,
    CancelRequest,
)

SessionOutput: TypeAlias = ServerEvent | StageRequest


def random_id(prefix: str) -> str:
    """An id such as `item_9f…`, 26 characters at most for the prefixes in use. Unique, not secret."""
    return f"{prefix}_{getrandbits(80):020x}"


class RealtimeSession:
    """The protocol of one connection. Times are seconds on the caller's clock; `wall` is Unix time at the start."""

    def __init__(
        self,
        *,
        model: str,
        voices: ServerVoices,
        wall: float,
        pacing: Pacing | None = None,
        new_id: Callable[[str], str] = random_id,
    ) -> None:
        self.id = new_id("sess")
        self._new_id = new_id
        self._voices = voices
        self._config = default_session(model, voices)
        self._config |= {"id": self.id, "expires_at": int(wall) + SESSION_SECONDS}
        settings = conversation_settings(self._config, voices)
        self._conversation = Conversation(self.id, settings, new_id, pacing)
        self._responses = Responses(self._conversation.history, new_id("conv"))
        self._outputs: list[SessionOutput] = []
        self._assistant_spoke = False
        self._finished_timeline: TurnTimeline | None = None
        self._emit({"type": "session.created", "session": self._config})
        self._conversation.prefill()
        self._translate()

    @property
    def history(self) -> History:
        """The conversation's items."""
        return self._conversation.history

    @property
    def finished_timeline(self) -> TurnTimeline | None:
        """The newest turn whose record is complete, playback end included."""
        return self._finished_timeline

    @property
    def frame_lacks(self) -> int:
        """Samples (16 kHz) until the next VAD frame is complete; audio that brings fewer has no effect yet."""
        return self._conversation.frame_lacks

    # --- in ---------------------------------------------------------------------------------------------------

    def receive_event(self, event: AnyClientEvent, now: float) -> None:
        """Carry out a client event; what cannot be done is answered by an `error` event.

        Audio comes through `append_audio` instead, since the caller resamples it.
        """
        try:
            self._handle(event, now)
        except InvalidRequestError as error:
            self.report_invalid(error, event.event_id)
        self._translate()

    def append_audio(self, pcm: bytes, samples: Samples, event_id: str | None = None) -> None:
        """The audio of an `input_audio_buffer.append`: PCM16 at 24 kHz, and the same as float32 at 16 kHz.

        Leaves `next_wakeup` as it was.
        """
        try:
            self._conversation.append_audio(pcm, samples)
        except InvalidRequestError as error:
            self.report_invalid(error, event_id)
        self._translate()

    def report_invalid(self, error: InvalidRequestError, event_id: str | None = None) -> None:
        """Answer a client event that cannot be carried out."""
        if isinstance(error, MalformedEventError):
            event_id = error.event_id
        error_type, code = error_type_and_code(error)
        self._emit(error_event(str(error), error_type=error_type, code=code, param=error.param, event_id=event_id))

    def receive_result(self, result: ConversationInput, now: float) -> None:
        """A stage's result."""
        self._conversation.receive(result, now)
        self._translate()

    def receive_speech(self, token: int, piece: SpokenPiece, now: float) -> None:
        """Synthesised audio at the protocol's rate."""
        self._conversation.receive_speech(token, piece, now)
        self._translate()

    def is_stale(self, token: int) -> bool:
        """True for the token of work that nobody waits for."""
        return self._conversation.is_stale(token)

    def advance(self, now: float) -> None:
        """Do whatever is due."""
        self._conversation.advance(now)
        self._translate()

    def next_wakeup(self, now: float) -> float | None:
        """When `advance` wants to be called, if nothing else happens."""
        return self._conversation.next_wakeup(now)

    def close(self) -> None:
        """The connection is gone: cancel everything in flight."""
        self._conversation.close()
        self._translate()

    # --- out --------------------------------------------------------------------------------------------------

    def take_outputs(self) -> list[SessionOutput]:
        """Server events (dicts) and stage requests since the last call, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    # --- client events ----------------------------------------------------------------------------------------

    def _handle(self, event: AnyClientEvent, now: float) -> None:
        if isinstance(event, SessionUpdate):
            self._update(event.session)
        elif isinstance(event, InputAudioBufferCommit):
            self._conversation.commit(now)
        elif isinstance(event, InputAudioBufferClear):
            self._conversation.clear_audio(now)
            self._translate()
            self._emit({"type": "input_audio_buffer.cleared"})
        elif isinstance(event, ConversationItemCreate):
            self._create_item(event)
        elif isinstance(event, ConversationItemRetrieve):
            self._retrieve(event.item_id)
        elif isinstance(event, ConversationItemTruncate):
            self._truncate(event, now)
        elif isinstance(event, ConversationItemDelete):
            self._delete(event.item_id)
        elif isinstance(event, ResponseCreate):
            self._create_response(event.response or {}, now)
        elif isinstance(event, ResponseCancel):
            self._conversation.cancel_reply(event.response_id, now)
        elif isinstance(event, OutputAudioBufferClear):
            raise InvalidRequestError(
                "output_audio_buffer.clear is available over WebRTC only; over WebSocket the client holds the buffer.",
                code="invalid_value",
                param="type",
            )
        else:
            assert isinstance(event, InputAudioBufferAppend)
            raise TypeError("audio comes through append_audio")

    def _update(self, patch: Json) -> None:
        config = updated_session(self._config, patch, self._voices)
        if self._assistant_spoke and config["audio"]["output"]["voice"] != self._config["audio"]["output"]["voice"]:
            raise InvalidRequestError(
                "Cannot update a conversation's voice if assistant audio is present.",
                code="cannot_update_voice",
                param="session.audio.output.voice",
            )
        prompt_changed = any(config[name] != self._config[name] for name in ("instructions", "tools", "tool_choice"))
        self._config = config
        self._conversation.configure(conversation_settings(config, self._voices), self._transcription())
        self._translate()
        self._emit({"type": "session.updated", "session": config})
        if prompt_changed:
            self._conversation.prefill()

    def _transcription(self) -> tuple[str, str]:
        transcription = self._config["audio"]["input"]["transcription"] or {}
        return transcription.get("language", ""), transcription.get("prompt", "")

    def _create_item(self, event: ConversationItemCreate) -> None:
        item = item_from_client(event.item, self._new_id("item"))
        self.history.insert(item, event.previous_item_id)
        self._item_events(item)
        self._conversation.prefill()

    def _item_events(self, item: Item) -> None:
        previous = self.history.previous_id(item)
        for kind in ("added", "done"):
            self._emit({"type": f"conversation.item.{kind}", "previous_item_id": previous, "item": item_json(item)})

    def _retrieve(self, item_id: str) -> None:
        item = self._existing(item_id, "retrieving", "item_retrieve_invalid_item_id")
        self._emit({"type": "conversation.item.retrieved", "item": item_json(item, with_audio=True)})

    def _delete(self, item_id: str) -> None:
        item = self._existing(item_id, "deleting", "item_delete_invalid_item_id")
        self._conversation.delete_item(item)
        self._translate()
        self._emit({"type": "conversation.item.deleted", "item_id": item_id})

    def _truncate(self, event: ConversationItemTruncate, now: float) -> None:
        item = self._existing(event.item_id, "truncating", "item_truncate_invalid_item_id")
        part = item.content[0] if item.kind == "message" and item.content else None
        if part is None or part.kind != "output_audio" or event.content_index != 0:
            raise InvalidRequestError(
                "Only the audio of an assistant message can be truncated (content_index 0).",
                code="invalid_value",
                param="content_index" if event.content_index else "item_id",
            )
        if event.audio_end_ms < 0:
            raise InvalidRequestError(
                f"Invalid value for 'audio_end_ms': expected 0 or more, got {event.audio_end_ms}.",
                param="audio_end_ms",
            )
        if event.audio_end_ms > part.audio_ms + TRUNCATE_TOLERANCE_MS:
            raise InvalidRequestError(
                f"Audio content of {int(part.audio_ms)}ms is already shorter than {event.audio_end_ms}ms",
                param="audio_end_ms",
            )
        self._conversation.truncate(part, event.audio_end_ms, now)
        self._translate()
        self._emit(
            {
                "type": "conversation.item.truncated",
                "item_id": item.id,
                "content_index": 0,
                "audio_end_ms": event.audio_end_ms,
            }
        )

    def _existing(self, item_id: str, doing: str, code: str) -> Item:
        item = self.history.find(item_id)
        if item is None:
            raise InvalidRequestError(
                f"Error {doing} item: the item with id '{item_id[:80]}' does not exist.", code=code, param="item_id"
            )
        return item

    def _create_response(self, response: Json, now: float) -> None:
        session = response_session(self._config, response, self._voices)
        reply = self._conversation.create_reply(reply_settings(session, self._voices), now)
        self._describe(reply.id, session, response.get("metadata"))

    def _describe(self, reply_id: str, session: Json, metadata: dict[str, str] | None) -> None:
        self._responses.describe(
            reply_id,
            metadata=metadata,
            max_output_tokens=session["max_output_tokens"],
            voice=session["audio"]["output"]["voice"],
        )

    # --- what the conversation tells --------------------------------------------------------------------------

    def _translate(self) -> None:
        for output in self._conversation.take_outputs():
            if isinstance(output, _REQUESTS):
                self._outputs.append(output)
            else:
                self._translate_event(output)

    def _translate_event(self, event: ConversationEvent) -> None:
        if isinstance(event, _REPLY_EVENTS):
            if not self._responses.is_described(event.reply.id):
                self._describe(event.reply.id, self._config, None)
            self._assistant_spoke = self._assistant_spoke or isinstance(event, ReplyAudio)
            for server_event in self._responses.events(event):
                self._emit(server_event)
        elif isinstance(event, InputCommitted):
            self._committed(event.item)
        elif isinstance(event, StageFailed):
            error_type, code = STAGE_FAILURE
            self._emit(error_event(event.message, error_type=error_type, code=code))
        elif isinstance(event, TurnMeasured):
            self._finished_timeline = event.timeline
        else:
            self._emit(_input_event(event))

    def _committed(self, item: Item) -> None:
        self._emit(
            {
                "type": "input_audio_buffer.committed",
                "item_id": item.id,
                "previous_item_id": self.history.previous_id(item),
            }
        )
        self._item_events(item)

    def _emit(self, event: ServerEvent) -> None:
        event["event_id"] = self._new_id("event")
        self._outputs.append(event)


def _input_event(
    event: SpeechStarted | SpeechStopped | TranscriptDelta | TranscriptCompleted | TranscriptFailed,
) -> dict[str, Any]:
    if isinstance(event, SpeechStarted):
        return {
            "type": "input_audio_buffer.speech_started",
            "item_id": event.item_id,
            "audio_start_ms": event.audio_start_ms,
        }
    if isinstance(event, SpeechStopped):
        return {
            "type": "input_audio_buffer.speech_stopped",
            "item_id": event.item_id,
            "audio_end_ms": event.audio_end_ms,
        }
    place = {"item_id": event.item_id, "content_index": 0}
    prefix = "conversation.item.input_audio_transcription"
    if isinstance(event, TranscriptDelta):
        return {"type": f"{prefix}.delta", **place, "delta": event.delta}
    if isinstance(event, TranscriptCompleted):
        return {
            "type": f"{prefix}.completed",
            **place,
            "transcript": event.transcript,
            "usage": {"type": "duration", "seconds": round(event.audio_seconds, 3)},
        }
    error_type, code = STAGE_FAILURE
    return {
        "type": f"{prefix}.failed",
        **place,
        "error": {"type": error_type, "code": code, "message": event.message},
    }

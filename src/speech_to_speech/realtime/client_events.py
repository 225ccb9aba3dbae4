"""The client events, as types. Shapes are checked here; ranges and meaning where they are used."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from speech_to_speech.errors import InvalidRequestError


class ClientEvent(msgspec.Struct, tag_field="type", kw_only=True):
    """What all client events share. Unknown extra fields are ignored."""

    event_id: str | None = None


class SessionUpdate(ClientEvent, tag="session.update"):
    session: dict[str, Any]


class InputAudioBufferAppend(ClientEvent, tag="input_audio_buffer.append"):
    audio: bytes


class InputAudioBufferCommit(ClientEvent, tag="input_audio_buffer.commit"):
    pass


class InputAudioBufferClear(ClientEvent, tag="input_audio_buffer.clear"):
    pass


class ConversationItemCreate(ClientEvent, tag="conversation.item.create"):
    item: dict[str, Any]
    previous_item_id: str | None = None


class ConversationItemRetrieve(ClientEvent, tag="conversation.item.retrieve"):
    item_id: str


class ConversationItemTruncate(ClientEvent, tag="conversation.item.truncate"):
    item_id: str
    content_index: int
    audio_end_ms: int


class ConversationItemDelete(ClientEvent, tag="conversation.item.delete"):
    item_id: str


class ResponseCreate(ClientEvent, tag="response.create"):
    response: dict[str, Any] | None = None


class ResponseCancel(ClientEvent, tag="response.cancel"):
    response_id: str | None = None


class OutputAudioBufferClear(ClientEvent, tag="output_audio_buffer.clear"):
    pass


AnyClientEvent: TypeAlias = (
    SessionUpdate
    | InputAudioBufferAppend
    | InputAudioBufferCommit
    | InputAudioBufferClear
    | ConversationItemCreate
    | ConversationItemRetrieve
    | ConversationItemTruncate
    | ConversationItemDelete
    | ResponseCreate
    | ResponseCancel
    | OutputAudioBufferClear
)

_decoder: msgspec.json.Decoder[AnyClientEvent] = msgspec.json.Decoder(AnyClientEvent)
_envelope_decoder = msgspec.json.Decoder(dict[str, Any])
_KNOWN_TYPES = frozenset(str(member.__struct_config__.tag) for member in AnyClientEvent.__args__)


class MalformedEventError(InvalidRequestError):
    """A frame that is no valid client event. `event_id` is the client's, where it could be read."""

    def __init__(self, message: str, *, code: str, param: str | None = None, event_id: str | None = None) -> None:
        super().__init__(message, code=code, param=param)
        self.event_id = event_id


def decode_client_event(frame: bytes | str) -> AnyClientEvent:
    """Parse one WebSocket text frame. Raises `MalformedEventError`; never anything else."""
    try:
        return _decoder.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _explain(frame, str(error)) from None


def _explain(frame: bytes | str, reason: str) -> MalformedEventError:
    """The documented error for a frame that did not parse, with the client's event id if it has one."""
    try:
        envelope = _envelope_decoder.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return MalformedEventError(f"The event is not a JSON object: {reason}", code="invalid_json")
    event_id = envelope.get("event_id")
    event_id = event_id if isinstance(event_id, str) else None
    event_type = envelope.get("type")
    if event_type is None:
        return MalformedEventError(
            "Missing required parameter: 'type'.", code="missing_required_parameter", param="type", event_id=event_id
        )
    if not isinstance(event_type, str) or event_type not in _KNOWN_TYPES:
        shown = str(event_type)[:80]
        return MalformedEventError(
            f"Invalid value: '{shown}'. Supported values are: {', '.join(sorted(_KNOWN_TYPES))}.",
            code="invalid_value",
            param="type",
            event_id=event_id,
        )
    path = reason.partition("at `$.")[2].rstrip("`") or None
    if "missing required field" in reason:
        name = reason.partition("`")[2].partition("`")[0]
        return MalformedEventError(
            f"Missing required parameter: '{name}'.",
            code="missing_required_parameter",
            param=name,
            event_id=event_id,
        )
    return MalformedEventError(
        f"Invalid value for '{path or event_type}': {reason}.", code="invalid_value", param=path, event_id=event_id
    )

"""The response lifecycle: a reply's events as `response.…` events, in the order clients rely on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from speech_to_speech.conversation.events import (
    ReplyAudio,
    ReplyEnded,
    ReplyItemAdded,
    ReplyItemDone,
    ReplyOpened,
    ReplyText,
)
from speech_to_speech.conversation.history import History, Item
from speech_to_speech.conversation.reply import Reply
from speech_to_speech.realtime.error_codes import STAGE_FAILURE
from speech_to_speech.realtime.items import item_json
from speech_to_speech.realtime.server_events import (
    AUDIO_DELTA_BYTES,
    ServerEvent,
    audio_base64,
    error_event,
    usage_json,
)


@dataclass(slots=True)
class _Response:
    """What a response shows besides the reply itself."""

    metadata: dict[str, str] | None
    max_output_tokens: int | str
    voice: str
    items: list[Item] = field(default_factory=list)


class Responses:
    """Translates the events of replies. Keeps what the protocol adds to them: output indices and metadata."""

    def __init__(self, history: History, conversation_id: str) -> None:
        self._history = history
        self._conversation_id = conversation_id
        self._responses: dict[str, _Response] = {}

    def describe(
        self, reply_id: str, *, metadata: dict[str, str] | None, max_output_tokens: int | str, voice: str
    ) -> None:
        """What the client (or the session) asked for in the response `reply_id`."""
        self._responses[reply_id] = _Response(metadata, max_output_tokens, voice)

    def is_described(self, reply_id: str) -> bool:
        """True once `describe` was called for it."""
        return reply_id in self._responses

    def events(
        self, event: ReplyOpened | ReplyItemAdded | ReplyText | ReplyAudio | ReplyItemDone | ReplyEnded
    ) -> list[ServerEvent]:
        """The protocol's events for one event of a reply."""
        if isinstance(event, ReplyOpened):
            return [{"type": "response.created", "response": self._shape(event.reply, "in_progress")}]
        if isinstance(event, ReplyItemAdded):
            return self._item_added(event)
        if isinstance(event, ReplyText):
            return [self._text_delta(event)]
        if isinstance(event, ReplyAudio):
            return self._audio_deltas(event)
        if isinstance(event, ReplyItemDone):
            return self._item_done(event)
        return self._ended(event)

    def _place(self, reply: Reply, item: Item) -> dict[str, Any]:
        index = self._responses[reply.id].items.index(item)
        return {"response_id": reply.id, "output_index": index, "item_id": item.id}

    def _item_added(self, event: ReplyItemAdded) -> list[ServerEvent]:
        items = self._responses[event.reply.id].items
        items.append(event.item)
        shape = item_json(event.item) | {"status": "in_progress"}
        if event.item.kind == "message":
            shape["content"] = []
        else:
            shape["arguments"] = ""
        events: list[ServerEvent] = [
            {
                "type": "response.output_item.added",
                "response_id": event.reply.id,
                "output_index": len(items) - 1,
                "item": shape,
            },
            {
                "type": "conversation.item.added",
                "previous_item_id": self._history.previous_id(event.item),
                "item": shape,
            },
        ]
        if event.item.kind == "message":
            events.append(
                {
                    "type": "response.content_part.added",
                    **self._place(event.reply, event.item),
                    "content_index": 0,
                    "part": _part(event.reply, ""),
                }
            )
        return events

    def _text_delta(self, event: ReplyText) -> ServerEvent:
        kind = "output_audio_transcript" if event.reply.settings.spoken else "output_text"
        return {
            "type": f"response.{kind}.delta",
            **self._place(event.reply, event.item),
            "content_index": 0,
            "delta": event.delta,
        }

    def _audio_deltas(self, event: ReplyAudio) -> list[ServerEvent]:
        place = self._place(event.reply, event.item)
        return [
            {
                "type": "response.output_audio.delta",
                **place,
                "content_index": 0,
                "delta": audio_base64(event.pcm[start : start + AUDIO_DELTA_BYTES]),
            }
            for start in range(0, len(event.pcm), AUDIO_DELTA_BYTES)
        ]

    def _item_done(self, event: ReplyItemDone) -> list[ServerEvent]:
        place = self._place(event.reply, event.item)
        events: list[ServerEvent] = []
        if event.call is not None:
            call = {"call_id": event.call.call_id}
            events += [
                {
                    "type": "response.function_call_arguments.delta",
                    **place,
                    **call,
                    "delta": event.call.arguments,
                },
                {
                    "type": "response.function_call_arguments.done",
                    **place,
                    **call,
                    "name": event.call.name,
                    "arguments": event.call.arguments,
                },
            ]
        else:
            events += self._content_done(event.reply, event.item, place)
        shape = item_json(event.item)
        return [
            *events,
            {
                "type": "conversation.item.done",
                "previous_item_id": self._history.previous_id(event.item),
                "item": shape,
            },
            {
                "type": "response.output_item.done",
                "response_id": event.reply.id,
                "output_index": place["output_index"],
                "item": shape,
            },
        ]

    def _content_done(self, reply: Reply, item: Item, place: dict[str, Any]) -> list[ServerEvent]:
        text = item.content[0].text or ""
        where = {**place, "content_index": 0}
        part_done = {"type": "response.content_part.done", **where, "part": _part(reply, text)}
        if not reply.settings.spoken:
            return [{"type": "response.output_text.done", **where, "text": text}, part_done]
        return [
            {"type": "response.output_audio.done", **where},
            {"type": "response.output_audio_transcript.done", **where, "transcript": text},
            part_done,
        ]

    def _ended(self, event: ReplyEnded) -> list[ServerEvent]:
        shape = self._shape(event.reply, event.status)
        events: list[ServerEvent] = []
        if event.status == "failed":
            error_type, code = STAGE_FAILURE
            shape["status_details"] = {
                "type": "failed",
                "error": {"type": error_type, "code": code, "message": event.error},
            }
            events.append(error_event(event.error, error_type=error_type, code=code))
        elif event.status != "completed":
            shape["status_details"] = {"type": event.status, "reason": event.reason}
        events.append({"type": "response.done", "response": shape})
        del self._responses[event.reply.id]
        return events

    def _shape(self, reply: Reply, status: str) -> dict[str, Any]:
        response = self._responses[reply.id]
        shape: dict[str, Any] = {
            "id": reply.id,
            "object": "realtime.response",
            "status": status,
            "status_details": None,
            "output": [item_json(item) for item in response.items],
            "conversation_id": self._conversation_id,
            "output_modalities": ["audio"] if reply.settings.spoken else ["text"],
            "max_output_tokens": response.max_output_tokens,
            "audio": {"output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": response.voice}},
            "metadata": response.metadata,
            "usage": None if status == "in_progress" else usage_json(reply.usage),
        }
        if status != "in_progress":
            shape["timeline"] = reply.timeline.as_milliseconds()
        return shape


def _part(reply: Reply, text: str) -> dict[str, Any]:
    if reply.settings.spoken:
        return {"type": "audio", "transcript": text}
    return {"type": "text", "text": text}

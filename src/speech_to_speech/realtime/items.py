"""Conversation items between their JSON shape and ours."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from speech_to_speech.conversation.history import ContentPart, Item
from speech_to_speech.errors import InvalidRequestError

MAXIMUM_ITEM_ID = 64
"""Characters of a client's own item id; stock clients send up to 32."""


def item_json(item: Item, *, with_audio: bool = False) -> dict[str, Any]:
    """The item as the protocol shows it. Absent fields are left out: a stock client refuses nulls in items."""
    shape: dict[str, Any] = {"id": item.id, "object": "realtime.item", "type": item.kind, "status": item.status}
    if item.kind == "message":
        shape["role"] = item.role
        shape["content"] = [_part_json(part, with_audio=with_audio) for part in item.content]
    elif item.kind == "function_call":
        shape |= {"name": item.name, "call_id": item.call_id, "arguments": item.arguments}
    else:
        shape |= {"call_id": item.call_id, "output": item.output}
    return shape


def _part_json(part: ContentPart, *, with_audio: bool) -> dict[str, Any]:
    if part.kind in ("input_text", "output_text"):
        return {"type": part.kind, "text": part.text or ""}
    shape: dict[str, Any] = {"type": part.kind, "transcript": part.text}
    if part.kind == "output_audio":
        shape["transcript"] = part.heard_text
    if with_audio and part.audio:
        audio = bytes(part.audio)
        if part.cut_ms is not None:
            audio = audio[: round(part.cut_ms) * 48]
        shape["audio"] = base64.b64encode(audio).decode()
    return shape


def item_from_client(shape: dict[str, Any], new_id: str) -> Item:
    """The item a client wants created; `new_id` is used when it names none. Raises `InvalidRequestError`."""
    kind = _string(shape, "type", required=True)
    item_id = _string(shape, "id") or new_id
    if len(item_id) > MAXIMUM_ITEM_ID:
        raise _invalid("item.id", f"at most {MAXIMUM_ITEM_ID} characters, got {len(item_id)}.")
    if kind == "message":
        return _message(shape, item_id)
    if kind == "function_call":
        return Item(
            id=item_id,
            kind="function_call",
            role="assistant",
            name=_string(shape, "name", required=True),
            call_id=_string(shape, "call_id") or new_id,
            arguments=_string(shape, "arguments", required=True),
        )
    if kind == "function_call_output":
        return Item(
            id=item_id,
            kind="function_call_output",
            call_id=_string(shape, "call_id", required=True),
            output=_string(shape, "output", required=True),
        )
    raise _invalid("item.type", f"{kind!r}. Supported values are: 'message', 'function_call', 'function_call_output'.")


_PARTS_OF_ROLE: dict[str, tuple[str, ...]] = {
    "system": ("input_text",),
    "user": ("input_text", "input_audio"),
    "assistant": ("output_text", "output_audio"),
}


def _message(shape: dict[str, Any], item_id: str) -> Item:
    role = _string(shape, "role", required=True)
    if role not in _PARTS_OF_ROLE:
        raise _invalid("item.role", f"{role!r}. Supported values are: 'system', 'user', 'assistant'.")
    content = shape.get("content")
    if not isinstance(content, list):
        raise _missing("item.content")
    parts = [_part(part, role, f"item.content[{index}]") for index, part in enumerate(content)]
    return Item(id=item_id, role=role, content=parts)  # type: ignore[arg-type]  # checked against _PARTS_OF_ROLE


def _part(shape: Any, role: str, path: str) -> ContentPart:
    if not isinstance(shape, dict):
        raise _invalid(path, "expected an object.")
    kind = shape.get("type")
    if kind not in _PARTS_OF_ROLE[role]:
        allowed = ", ".join(f"'{name}'" for name in _PARTS_OF_ROLE[role])
        raise _invalid(f"{path}.type", f"{str(kind)[:80]!r}. Supported values for this role are: {allowed}.")
    if kind == "input_audio":
        return _audio_part(shape, path)
    if not isinstance(shape.get("text"), str):
        raise _missing(f"{path}.text")
    return ContentPart("output_text" if role == "assistant" else "input_text", text=shape["text"])


def _audio_part(shape: dict[str, Any], path: str) -> ContentPart:
    """Audio of a past turn: it enters the history by its transcript."""
    transcript = shape.get("transcript")
    if not isinstance(transcript, str):
        raise InvalidRequestError(
            f"Missing required parameter: '{path}.transcript'. Audio items are taken by their transcript; "
            "send audio to be transcribed through input_audio_buffer.append.",
            code="missing_required_parameter",
            param=f"{path}.transcript",
        )
    audio = shape.get("audio") or ""
    try:
        pcm = base64.b64decode(audio, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise _invalid(f"{path}.audio", "expected base64.") from None
    return ContentPart("input_audio", text=transcript, audio=bytearray(pcm))


def _string(shape: dict[str, Any], name: str, *, required: bool = False) -> str:
    value = shape.get(name)
    if value is None:
        if required:
            raise _missing(f"item.{name}")
        return ""
    if not isinstance(value, str):
        raise _invalid(f"item.{name}", "expected a string.")
    return value


def _missing(path: str) -> InvalidRequestError:
    return InvalidRequestError(f"Missing required parameter: '{path}'.", code="missing_required_parameter", param=path)


def _invalid(path: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(f"Invalid value for '{path}': {message}", code="invalid_value", param=path)

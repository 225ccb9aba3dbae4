"""The conversation's items in order, and the prompt they make: what was said, and what was heard of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from speech_to_speech.conversation.spoken_text import SpokenText
from speech_to_speech.errors import InvalidRequestError
from speech_to_speech.stage_types import ChatMessage, ToolCall

PartKind: TypeAlias = Literal["input_text", "input_audio", "output_text", "output_audio"]
ItemKind: TypeAlias = Literal["message", "function_call", "function_call_output"]
ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete"]
Role: TypeAlias = Literal["system", "user", "assistant"]

RETAINED_AUDIO_BYTES = 30 * 1024 * 1024
"""Audio kept for `retrieve`, all items of a session together (about ten minutes); the oldest is dropped first."""


@dataclass(slots=True)
class ContentPart:
    """One part of a message.

    `text` is the text, or the transcript of audio (None while there is none yet); `audio` is PCM16 at 24 kHz.
    `spoken` aligns an answer's transcript with its audio; `cut_ms` is where the listener stopped hearing it.
    """

    kind: PartKind
    text: str | None = None
    audio: bytearray = field(default_factory=bytearray)
    spoken: SpokenText | None = None
    cut_ms: float | None = None

    @property
    def heard_text(self) -> str:
        """The text as far as it reached the listener."""
        if self.cut_ms is None or self.spoken is None:
            return self.text or ""
        return self.spoken.heard(self.cut_ms)

    @property
    def audio_ms(self) -> float:
        """Length of `audio` in ms."""
        return len(self.audio) / 48


@dataclass(slots=True, eq=False)
class Item:
    """One item of the conversation. `name`, `call_id`, `arguments`, `output` only on function items."""

    id: str
    kind: ItemKind = "message"
    role: Role = "user"
    status: ItemStatus = "completed"
    content: list[ContentPart] = field(default_factory=list)
    name: str = ""
    call_id: str = ""
    arguments: str = ""
    output: str = ""

    @property
    def heard_text(self) -> str:
        """All its text as far as it reached the listener."""
        return "\n".join(part.heard_text for part in self.content if part.heard_text)


class History:
    """The items of one conversation, in order."""

    def __init__(self) -> None:
        self._items: list[Item] = []

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def find(self, item_id: str) -> Item | None:
        """The item with this id, or None."""
        return next((item for item in self._items if item.id == item_id), None)

    def previous_id(self, item: Item) -> str | None:
        """The id of the item before `item`; None for the first, and for one that was deleted."""
        position = self._items.index(item) if item in self._items else 0
        return self._items[position - 1].id if position else None

    def insert(self, item: Item, previous_item_id: str | None = None) -> None:
        """Add `item` at the end, after `previous_item_id`, or in front for "root".

        Raises `InvalidRequestError` when the id is taken or the previous item does not exist.
        """
        if self.find(item.id) is not None:
            raise InvalidRequestError(
                f"Error adding item: an item with id '{item.id}' already exists.",
                code="item_create_duplicate_item_id",
                param="item.id",
            )
        self._items.insert(self._position_after(previous_item_id), item)
        self._drop_oldest_audio()

    def delete(self, item: Item) -> None:
        """Remove `item`."""
        self._items.remove(item)

    def messages(self, instructions: str, *, until: str | None = None) -> tuple[ChatMessage, ...]:
        """The prompt: the instructions, then what was said and heard. Stops before item `until`."""
        messages = [ChatMessage("system", instructions)] if instructions else []
        for item in self._items:
            if item.id == until:
                break
            messages.extend(_as_messages(item))
        return tuple(_joined_tool_calls(messages))

    def _position_after(self, previous_item_id: str | None) -> int:
        if previous_item_id is None:
            return len(self._items)
        if previous_item_id == "root":
            return 0
        for position, item in enumerate(self._items):
            if item.id == previous_item_id:
                return position + 1
        raise InvalidRequestError(
            f"Error adding item: the previous item with id '{previous_item_id}' does not exist.",
            code="item_create_invalid_previous_item_id",
            param="previous_item_id",
        )

    def _drop_oldest_audio(self) -> None:
        total = sum(len(part.audio) for item in self._items for part in item.content)
        for item in self._items:
            for part in item.content:
                if total <= RETAINED_AUDIO_BYTES:
                    return
                total -= len(part.audio)
                part.audio = bytearray()


def _as_messages(item: Item) -> list[ChatMessage]:
    if item.kind == "function_call":
        return [ChatMessage("assistant", "", (ToolCall(item.call_id, item.name, item.arguments),))]
    if item.kind == "function_call_output":
        return [ChatMessage("tool", item.output, call_id=item.call_id)]
    text = item.heard_text
    return [ChatMessage(item.role, text)] if text else []


def _joined_tool_calls(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Calls that follow the assistant's words, or each other, belong to one assistant message."""
    joined: list[ChatMessage] = []
    for message in messages:
        last = joined[-1] if joined else None
        if message.tool_calls and last is not None and last.role == "assistant":
            joined[-1] = ChatMessage("assistant", last.text, last.tool_calls + message.tool_calls)
        else:
            joined.append(message)
    return joined

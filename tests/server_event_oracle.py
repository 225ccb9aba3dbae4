"""Judges server events by the official client's types, and by what stricter stock clients refuse besides."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter


@cache
def _official() -> TypeAdapter[Any]:
    from openai.types.realtime import RealtimeServerEvent

    return TypeAdapter(RealtimeServerEvent)


NULLABLE_IN_ITEMS = {"transcript"}


def check_server_event(event: dict[str, Any]) -> None:
    """Raises when a stock client would refuse, ignore or die of `event`."""
    _official().validate_python(event, strict=False)
    for item in _items(event):
        _check_item(item, event["type"])
    if event["type"].startswith("response.content_part"):
        assert all(value is not None for value in event["part"].values()), f"null in a part: {event}"
    if "audio_start_ms" in event:
        assert isinstance(event["audio_start_ms"], int)


def check_order(events: list[dict[str, Any]]) -> None:
    """The rules that hold between events of one session."""
    assert events[0]["type"] == "session.created"
    known_items: list[str] = []
    active: str | None = None
    announced: set[tuple[str, str]] = set()
    open_items: set[str] = set()
    event_ids = [event["event_id"] for event in events]
    assert len(set(event_ids)) == len(event_ids), "event ids must be unique"
    for event in events:
        kind = event["type"]
        if kind == "conversation.item.added":
            if event["previous_item_id"] is None:
                assert not known_items, "previous_item_id null is for the first item only"
            known_items.append(event["item"]["id"])
        elif kind == "conversation.item.deleted":
            known_items.remove(event["item_id"])
        elif kind == "response.created":
            assert active is None, "one response at a time"
            active = event["response"]["id"]
        elif kind == "response.output_item.added":
            assert event["response_id"] == active
            announced.add((event["response_id"], event["item"]["id"]))
            open_items.add(event["item"]["id"])
        elif kind == "response.output_item.done":
            open_items.discard(event["item"]["id"])
        elif kind == "response.done":
            assert event["response"]["id"] == active
            assert not open_items, "every item is done before the response"
            active = None
        elif kind.startswith("response.") and "item_id" in event:
            assert (event["response_id"], event["item_id"]) in announced, f"{kind} for an item not announced"
    _deltas_add_up(events, "conversation.item.input_audio_transcription", "completed", "transcript")
    _deltas_add_up(events, "response.output_audio_transcript", "done", "transcript")
    _deltas_add_up(events, "response.output_text", "done", "text")


def _deltas_add_up(events: list[dict[str, Any]], prefix: str, final: str, key: str) -> None:
    parts: dict[str, str] = {}
    for event in events:
        if event["type"] == f"{prefix}.delta":
            parts[event["item_id"]] = parts.get(event["item_id"], "") + event["delta"]
        elif event["type"] == f"{prefix}.{final}":
            assert parts.get(event["item_id"], "") == event[key], f"{prefix} deltas must concatenate to the final text"


def _items(event: dict[str, Any]) -> list[dict[str, Any]]:
    items = [event["item"]] if "item" in event else []
    return items + list(event.get("response", {}).get("output", []))


def _check_item(item: dict[str, Any], where: str) -> None:
    assert all(value is not None for value in item.values()), f"null in an item of {where}: {item}"
    for part in item.get("content", []):
        if part["type"] == "input_audio":
            assert "transcript" in part, f"input_audio without a transcript key in {where}"
        nulls = {name for name, value in part.items() if value is None}
        assert nulls <= NULLABLE_IN_ITEMS, f"null in content of {where}: {part}"

"""From the events of a streamed response (OpenAI's responses endpoint) to the chunks `AnswerReader` reads."""

from __future__ import annotations

from typing import Any

from speech_to_speech.errors import StageError


class ResponsesReader:
    """Reads one response. `ended` is true once the server has said how it ended."""

    def __init__(self) -> None:
        self.ended = False
        self._calls: dict[str, int] = {}

    def chunk(self, event: dict[str, Any]) -> dict[str, Any]:
        """What `event` says as a `chat.completion.chunk`; without choices where it says nothing.

        Raises `StageError` for a failed response.
        """
        kind = event.get("type", "")
        if kind == "response.output_text.delta":
            return _delta({"content": event["delta"]})
        if kind == "response.output_item.added" and event["item"]["type"] == "function_call":
            item = event["item"]
            self._calls[item["id"]] = len(self._calls)
            function = {"name": item["name"], "arguments": item.get("arguments", "")}
            return self._call(item["id"], {"id": item["call_id"], "function": function})
        if kind == "response.function_call_arguments.delta" and event["item_id"] in self._calls:
            return self._call(event["item_id"], {"function": {"arguments": event["delta"]}})
        if kind in ("response.completed", "response.incomplete"):
            self.ended = True
            return _end(event["response"])
        if kind in ("response.failed", "error"):
            error = (event.get("response") or event).get("error") or event
            raise StageError("llm", str(error.get("message", error)))
        return {}

    def _call(self, item_id: str, part: dict[str, Any]) -> dict[str, Any]:
        return _delta({"tool_calls": [{"index": self._calls[item_id], **part}]})


def _delta(delta: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"delta": delta}]}


def _end(response: dict[str, Any]) -> dict[str, Any]:
    details = response.get("incomplete_details") or {}
    reason = "length" if details.get("reason") == "max_output_tokens" else "stop"
    usage = response.get("usage") or {}
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens", 0)
    return {
        "choices": [{"delta": {}, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": usage.get("input_tokens", 0),
            "completion_tokens": usage.get("output_tokens", 0),
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }

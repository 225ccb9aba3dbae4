"""A `GenerateRequest` in the terms of an OpenAI-compatible chat-completions endpoint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from speech_to_speech.stage_types import ChatMessage, Tool


def chat_message(message: ChatMessage) -> dict[str, Any]:
    """`message` in the shape of the endpoint's `messages`."""
    shaped: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        shaped["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.role == "tool":
        shaped["tool_call_id"] = message.call_id
    return shaped


def chat_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """`tools` in the shape of the endpoint's `tools`."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]

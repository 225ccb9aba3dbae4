"""A `GenerateRequest` in the terms of OpenAI-compatible endpoints: chat completions and responses."""

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


def chat_tool_choice(choice: str) -> str | dict[str, Any]:
    """`choice` in the shape of chat completions' `tool_choice`."""
    return choice if choice in ("auto", "none", "required") else {"type": "function", "function": {"name": choice}}


def response_items(message: ChatMessage) -> list[dict[str, Any]]:
    """`message` in the shape of the responses endpoint's `input`: a message, then its calls; or a call's result."""
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.call_id, "output": message.text}]
    items: list[dict[str, Any]] = [{"role": message.role, "content": message.text}] if message.text else []
    return items + [
        {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]


def response_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """`tools` in the shape of the responses endpoint's `tools`."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }
        for tool in tools
    ]


def response_tool_choice(choice: str) -> str | dict[str, Any]:
    """`choice` in the shape of the responses endpoint's `tool_choice`."""
    return choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}

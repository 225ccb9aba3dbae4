"""The server events, as the dicts that go on the wire (without `event_id`, which the session adds)."""

from __future__ import annotations

import base64
from typing import Any, TypeAlias

from speech_to_speech.stage_types import Usage

ServerEvent: TypeAlias = dict[str, Any]

AUDIO_DELTA_BYTES = 96_000
"""PCM in one audio delta at most (two seconds): stock clients refuse messages over a few MiB."""


def error_event(
    message: str, *, error_type: str, code: str | None, param: str | None = None, event_id: str | None = None
) -> ServerEvent:
    """An `error` event; `event_id` is that of the client's event, if one caused it."""
    return {
        "type": "error",
        "error": {"type": error_type, "code": code, "message": message, "param": param, "event_id": event_id},
    }


def usage_json(usage: Usage) -> dict[str, Any]:
    """Token usage of a response. Everything the model reads and writes is text; speech is counted as its text."""
    return {
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "input_token_details": {
            "text_tokens": usage.input_tokens,
            "audio_tokens": 0,
            "image_tokens": 0,
            "cached_tokens": usage.cached_tokens,
            "cached_tokens_details": {"text_tokens": usage.cached_tokens, "audio_tokens": 0, "image_tokens": 0},
        },
        "output_token_details": {"text_tokens": usage.output_tokens, "audio_tokens": 0},
    }


def audio_base64(pcm: bytes | memoryview) -> str:
    """PCM16 as the protocol carries it."""
    return base64.b64encode(pcm).decode()

"""The effective session: defaults, partial updates, and the range of every field.

A configuration is the very object that `session.updated` reports, so what a client reads back is what runs.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from speech_to_speech.conversation.conversation import ConversationSettings
from speech_to_speech.conversation.reply import ReplySettings
from speech_to_speech.conversation.turn_detection import SemanticVAD, ServerVAD, TurnDetection
from speech_to_speech.errors import InvalidRequestError
from speech_to_speech.stage_types import Tool

Json: TypeAlias = dict[str, Any]
Check: TypeAlias = Callable[[Any, str], Any]
"""Takes a value and its path; returns the effective value or raises `InvalidRequestError`."""

OPENAI_VOICES = ("alloy", "ash", "ballad", "cedar", "coral", "echo", "marin", "sage", "shimmer", "verse")
"""Names that stock clients send unasked; each means this server's default voice."""

DEFAULT_INSTRUCTIONS = (
    "You are a helpful voice assistant. Answer in one or two short, plain sentences, as in a spoken conversation."
)


@dataclass(frozen=True, slots=True)
class ServerVoices:
    """The voices the synthesiser has; the first is the default."""

    names: tuple[str, ...]

    def resolve(self, name: str) -> str:
        """The synthesiser's name for `name`; "" for the default."""
        return name if name in self.names else ""


def default_session(model: str, voices: ServerVoices) -> Json:
    """The session object of a connection that has sent nothing yet (without id and expiry)."""
    return {
        "type": "realtime",
        "object": "realtime.session",
        "model": model,
        "output_modalities": ["audio"],
        "instructions": DEFAULT_INSTRUCTIONS,
        "tools": [],
        "tool_choice": "auto",
        "max_output_tokens": "inf",
        "truncation": "auto",
        "tracing": None,
        "include": None,
        "prompt": None,
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "noise_reduction": None,
                "transcription": None,
                "turn_detection": {
                    "type": "semantic_vad",
                    "eagerness": "auto",
                    "create_response": True,
                    "interrupt_response": True,
                },
            },
            "output": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "voice": voices.names[0] if voices.names else "default",
                "speed": 1.0,
            },
        },
    }


def updated_session(session: Json, patch: Json, voices: ServerVoices) -> Json:
    """A copy of `session` with the fields of `patch` changed. Raises `InvalidRequestError`; changes nothing then."""
    if "type" not in patch:
        raise _missing("session.type")
    _one_of("realtime")(patch["type"], "session.type")
    result = copy.deepcopy(session)
    _merge(result, patch, _session_fields(voices), "session")
    return result


def conversation_settings(session: Json, voices: ServerVoices) -> ConversationSettings:
    """What the turn loop needs of the session."""
    audio = session["audio"]
    return ConversationSettings(
        turn_detection=_turn_detection(audio["input"]["turn_detection"]),
        reply=reply_settings(session, voices),
        report_transcripts=audio["input"]["transcription"] is not None,
    )


def reply_settings(session: Json, voices: ServerVoices) -> ReplySettings:
    """How replies are made in this session."""
    choice = session["tool_choice"]
    limit = session["max_output_tokens"]
    output = session["audio"]["output"]
    return ReplySettings(
        instructions=session["instructions"],
        tools=tuple(Tool(t["name"], t.get("description", ""), t.get("parameters", {})) for t in session["tools"]),
        tool_choice=choice if isinstance(choice, str) else choice["name"],
        spoken=session["output_modalities"] == ["audio"],
        voice=voices.resolve(output["voice"]),
        speed=output["speed"],
        max_tokens=None if limit == "inf" else limit,
    )


RESPONSE_FIELDS = (
    "instructions",
    "tools",
    "tool_choice",
    "output_modalities",
    "max_output_tokens",
    "audio",
    "metadata",
    "conversation",
    "prompt",
    "reasoning",
    "parallel_tool_calls",
)


def response_session(session: Json, response: Json, voices: ServerVoices) -> Json:
    """The session as one `response.create` overrides it."""
    fields = _session_fields(voices)
    allowed = {name: fields[name] for name in RESPONSE_FIELDS if name in fields}
    allowed["audio"] = {"output": fields["audio"]["output"]}
    allowed["metadata"] = _metadata
    allowed["conversation"] = _one_of("auto")
    result = copy.deepcopy(session)
    _merge(result, response, allowed, "response")
    return result


def _turn_detection(config: Json | None) -> TurnDetection | None:
    if config is None:
        return None
    common = {"create_response": config["create_response"], "interrupt_response": config["interrupt_response"]}
    if config["type"] == "semantic_vad":
        return SemanticVAD(eagerness=config["eagerness"], **common)
    return ServerVAD(
        threshold=config["threshold"],
        prefix_padding_ms=config["prefix_padding_ms"],
        silence_duration_ms=config["silence_duration_ms"],
        **common,
    )


# --- fields -------------------------------------------------------------------------------------------------------


def _session_fields(voices: ServerVoices) -> dict[str, Any]:
    return {
        "type": _one_of("realtime"),
        "object": _ignored,
        "id": _ignored,
        "expires_at": _ignored,
        "model": _ignored,
        "output_modalities": _output_modalities,
        "instructions": _text,
        "tools": _tools,
        "tool_choice": _tool_choice,
        "max_output_tokens": _max_output_tokens,
        "truncation": _truncation,
        "tracing": _anything,
        "include": _anything,
        "prompt": _null("prompt templates are stored by the hosted API only"),
        "reasoning": _ignored,
        "parallel_tool_calls": _ignored,
        "audio": {
            "input": {
                "format": _pcm_format,
                "noise_reduction": _noise_reduction,
                "transcription": _transcription,
                "turn_detection": _checked_turn_detection,
            },
            "output": {"format": _pcm_format, "voice": _voice(voices), "speed": _number(0.25, 1.5)},
        },
    }


_IGNORED = object()
"""Returned by checks of fields that are accepted and change nothing."""


def _merge(target: Json, patch: Json, fields: Mapping[str, Any], path: str) -> None:
    for name, value in patch.items():
        here = f"{path}.{name}"
        if name not in fields:
            raise _unknown(here, name, fields)
        check = fields[name]
        if isinstance(check, dict):
            if value is None:
                continue
            _merge(target[name], _object(value, here), check, here)
            continue
        effective = check(value, here)
        if effective is not _IGNORED:
            target[name] = effective


def _invalid(path: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(f"Invalid value for '{path}': {message}", code="invalid_value", param=path)


def _missing(path: str) -> InvalidRequestError:
    return InvalidRequestError(f"Missing required parameter: '{path}'.", code="missing_required_parameter", param=path)


def _unknown(path: str, name: str, known: Mapping[str, Any]) -> InvalidRequestError:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return InvalidRequestError(f"Unknown parameter: '{path}'.{hint}", code="unknown_parameter", param=path)


def _object(value: Any, path: str) -> Json:
    if not isinstance(value, dict):
        raise _invalid(path, "expected an object.")
    return value


def _ignored(_value: Any, _path: str) -> Any:
    return _IGNORED


def _anything(value: Any, _path: str) -> Any:
    return value


def _null(reason: str) -> Check:
    def check(value: Any, path: str) -> None:
        if value is not None:
            raise _invalid(path, f"{reason}; only null is accepted.")

    return check


def _one_of(*choices: str) -> Check:
    def check(value: Any, path: str) -> str:
        if value not in choices or not isinstance(value, str):
            shown = ", ".join(f"'{choice}'" for choice in choices)
            raise _invalid(path, f"{str(value)[:80]!r}. Supported values are: {shown}.")
        return value

    return check


def _number(low: float, high: float) -> Check:
    def check(value: Any, path: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise _invalid(path, f"expected a number from {low} to {high}, got {str(value)[:80]}.")
        return float(value)

    return check


def _integer(low: int, high: int) -> Check:
    def check(value: Any, path: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _invalid(path, f"expected an integer from {low} to {high}, got {str(value)[:80]}.")
        return value

    return check


def _boolean(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise _invalid(path, "expected true or false.")
    return value


def _text(value: Any, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _invalid(path, "expected a string.")
    return value


def _output_modalities(value: Any, path: str) -> list[str]:
    if value not in (["audio"], ["text"]):
        raise _invalid(path, f"{str(value)[:80]}. Supported combinations are: ['text'] and ['audio'].")
    return list(value)


def _max_output_tokens(value: Any, path: str) -> int | str:
    if value == "inf" or value is None:
        return "inf"
    return int(_integer(1, 4096)(value, path))


def _truncation(value: Any, path: str) -> Any:
    if value not in ("auto", "disabled") and not isinstance(value, dict):
        raise _invalid(path, "expected 'auto', 'disabled' or an object.")
    return "auto"


def _tools(value: Any, path: str) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _invalid(path, "expected a list.")
    return [_tool(tool, f"{path}[{index}]") for index, tool in enumerate(value)]


def _tool(value: Any, path: str) -> Json:
    tool = _object(value, path)
    _one_of("function")(tool.get("type"), f"{path}.type")
    if not isinstance(tool.get("name"), str) or not tool["name"]:
        raise _missing(f"{path}.name")
    _text(tool.get("description"), f"{path}.description")
    parameters = tool.get("parameters")
    if parameters is not None:
        _object(parameters, f"{path}.parameters")
    return {
        "type": "function",
        "name": tool["name"],
        "description": tool.get("description") or "",
        "parameters": parameters or {"type": "object", "properties": {}},
    }


def _tool_choice(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        _one_of("function")(value.get("type"), f"{path}.type")
        if not isinstance(value.get("name"), str):
            raise _missing(f"{path}.name")
        return {"type": "function", "name": value["name"]}
    return _one_of("auto", "none", "required")(value, path)


def _metadata(value: Any, path: str) -> Any:
    if value is None:
        return None
    metadata = _object(value, path)
    if len(metadata) > 16:
        raise _invalid(path, f"at most 16 pairs, got {len(metadata)}.")
    for key, text in metadata.items():
        if len(key) > 64:
            raise _invalid(path, f"keys are at most 64 characters, got {len(key)}.")
        if not isinstance(text, str) or len(text) > 512:
            raise _invalid(f"{path}.{key}", "expected a string of at most 512 characters.")
    return metadata


def _pcm_format(value: Any, path: str) -> Json:
    format_ = _object(value, path)
    _one_of("audio/pcm")(format_.get("type"), f"{path}.type")
    if format_.get("rate", 24000) != 24000:
        raise _invalid(f"{path}.rate", f"expected 24000, got {str(format_.get('rate'))[:80]}.")
    return {"type": "audio/pcm", "rate": 24000}


def _noise_reduction(value: Any, path: str) -> None:
    """No noise reduction runs here, and the session says so: whatever is asked for, null is reported."""
    if value is not None:
        _one_of("near_field", "far_field")(_object(value, path).get("type"), f"{path}.type")


def _transcription(value: Any, path: str) -> Json | None:
    if value is None:
        return None
    fields: dict[str, Check] = {
        "model": _text,
        "language": _text,
        "prompt": _text,
        "languages": _ignored,
        "keywords": _ignored,
        "delay": _ignored,
    }
    result: Json = {"model": "", "language": "", "prompt": ""}
    _merge(result, _object(value, path), fields, path)
    return {name: text for name, text in result.items() if text or name == "model"}


def _checked_turn_detection(value: Any, path: str) -> Json | None:
    if value is None:
        return None
    config = dict(_object(value, path))
    kind = _one_of("server_vad", "semantic_vad")(config.get("type"), f"{path}.type")
    result: Json = {"type": kind, "create_response": True, "interrupt_response": True}
    fields: dict[str, Check] = {
        "type": _anything,
        "create_response": _boolean,
        "interrupt_response": _boolean,
    }
    if kind == "server_vad":
        result |= {"threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 500, "idle_timeout_ms": None}
        fields |= {
            "threshold": _number(0.0, 1.0),
            "prefix_padding_ms": _integer(0, 5000),
            "silence_duration_ms": _integer(0, 10000),
            "idle_timeout_ms": _null("no idle timeout is available"),
        }
    else:
        result["eagerness"] = "auto"
        fields["eagerness"] = _one_of("low", "medium", "high", "auto")
    present = {name: setting for name, setting in config.items() if setting is not None or name == "idle_timeout_ms"}
    _merge(result, present, fields, path)
    return result


def _voice(voices: ServerVoices) -> Check:
    def check(value: Any, path: str) -> str:
        name = value.get("id") if isinstance(value, dict) else value
        if not isinstance(name, str):
            raise _invalid(path, "expected a voice's name.")
        if name not in voices.names and name not in OPENAI_VOICES:
            raise _invalid(
                path,
                f"no voice is named {name[:80]!r}. This server's voices: {', '.join(voices.names)}; "
                f"the names {', '.join(OPENAI_VOICES)} mean its default.",
            )
        return name

    return check

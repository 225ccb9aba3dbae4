"""Function calls that a model writes into its text.

Small models often write a call as bare JSON, fenced, or in `<tool_call>` tags, whatever their template asks for:
`{"name": "set_timer", "arguments": {"minutes": 5}}`. Nothing of that may ever be spoken.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from speech_to_speech.stage_types import TextDelta, Tool, ToolCall

SPEECH_GRAMMAR = r"root ::= [^{<`\[ \n] [^{]*"
"""GBNF of an answer that holds no function call in any of the forms `ToolCallParser` knows."""

_OPENINGS = ("<tool_call>", "</tool_call>", "```", "{", "[")
_OPENING = re.compile("|".join(re.escape(opening) for opening in _OPENINGS))
_BEFORE_OBJECT = re.compile(r"\w*[\s\[]*")
_FIRST_KEY = re.compile(r'\{\s*(?:"(?P<key>\w*)(?P<end>"?))?')
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]|\\.)*"|["{}]', re.DOTALL)
_CALL_KEYS = ("name", "arguments", "parameters", "function", "type", "id")
_NO_SPEECH = re.compile(r"\W*(json)?\W*")


def new_call_id() -> str:
    """An id in the form of OpenAI's."""
    return f"call_{secrets.token_hex(12)}"


def calls_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """The JSON schema of one call of one of `tools`.

    `x-guidance` is understood by llguidance, the grammar engine inside llama.cpp: no line breaks and indentation,
    which would take almost twice the tokens.
    """
    return {
        "anyOf": [
            {
                "type": "object",
                "properties": {"name": {"const": tool.name}, "arguments": tool.parameters or {"type": "object"}},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            for tool in tools
        ],
        "x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    }


class ToolCallParser:
    """Splits the text of one answer into what is said and what is called. `names` are the tools there are.

    Text that may become a call is held back until that is decided. After a call only further calls count: what small
    models write behind a call is neither said nor called.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held = ""
        self._called = False
        self.unknown_call = False
        """The model called a function that does not exist; the call was left out."""
        self.ended = False
        """The model went on to talk after a call: the rest of the answer is of no use."""

    def feed(self, text: str) -> list[TextDelta | ToolCall]:
        self._held += text
        return list(self._decided_pieces(final=False))

    def finish(self) -> list[TextDelta | ToolCall]:
        """What was held back, unless it is a call cut off in its middle."""
        return list(self._decided_pieces(final=True))

    def _decided_pieces(self, final: bool) -> Iterator[TextDelta | ToolCall]:
        while self._held:
            opening = _OPENING.search(self._held)
            if opening is None:
                yield from self._said(len(self._held) if final else len(self._held) - _partial_opening(self._held))
                return
            yield from self._said(opening.start())
            decision = _decide(self._held, opening.group(), final)
            if decision is None:
                return
            if isinstance(decision, int):
                yield from self._said(decision)
            else:
                self._held = self._held[decision.length :]
                yield from self._call(decision)

    def _said(self, length: int) -> Iterator[TextDelta]:
        text, self._held = self._held[:length], self._held[length:]
        if self._called:
            self.ended = self.ended or not _NO_SPEECH.fullmatch(text)
        elif text:
            yield TextDelta(text)

    def _call(self, written: _Written) -> Iterator[ToolCall]:
        if not written.name:
            return
        self._called = True
        if written.name in self._names:
            yield ToolCall(new_call_id(), written.name, written.arguments)
        else:
            self.unknown_call = True


@dataclass(frozen=True, slots=True)
class _Written:
    """A call as it stands in the text, `length` characters long. `name` is "" for what is to be left out."""

    length: int
    name: str = ""
    arguments: str = ""


def _partial_opening(text: str) -> int:
    """Length of the end of `text` that may be the beginning of an opening."""
    longest = max(len(opening) for opening in _OPENINGS) - 1
    return next(
        (
            length
            for length in range(min(longest, len(text)), 0, -1)
            if any(opening.startswith(text[-length:]) for opening in _OPENINGS)
        ),
        0,
    )


def _decide(text: str, opening: str, final: bool) -> int | _Written | None:
    """What `text`, which begins with `opening`, turns out to be.

    A number of characters that are no call, a call (or a tag without one), or None if more text is needed.
    """
    is_tag = opening.startswith("<")
    no_call = _Written(len(opening)) if is_tag else len(opening)
    if opening == "</tool_call>":
        return no_call
    start = 0
    if opening != "{":
        before = _BEFORE_OBJECT.match(text, len(opening))
        assert before is not None
        start = before.end()
        if start == len(text):
            return no_call if final else None
        if text[start] != "{":
            return no_call
    key = _FIRST_KEY.match(text, start)
    assert key is not None
    if not _may_open_call(key, at_end=key.end() == len(text)):
        return no_call
    end = _object_end(text, start)
    if end is not None:
        return _call_in(text[start:end], end) or end
    if not final:
        return None
    return _Written(len(text)) if is_tag or key["end"] else no_call


def _may_open_call(key: re.Match[str], at_end: bool) -> bool:
    """Whether the first key of an object is, or may become, one of a call."""
    if key["key"] is None:
        return at_end
    if key["end"]:
        return key["key"] in _CALL_KEYS
    return at_end and any(known.startswith(key["key"]) for known in _CALL_KEYS)


def _object_end(text: str, start: int) -> int | None:
    """Index behind the brace that closes the JSON object at `start`; None if it is not there yet."""
    depth = 0
    for token in _STRING_OR_BRACE.finditer(text, start):
        if token.group() == '"':  # a string without its end
            return None
        depth += (token.group() == "{") - (token.group() == "}")
        if depth == 0:
            return token.end()
    return None


def _call_in(written: str, length: int) -> _Written | None:
    """The call that the JSON object `written` is; None if it is no call."""
    try:
        members = _members(written)
        if members.get("function", "").startswith("{"):
            members = _members(members["function"])
        name = json.loads(members.get("name") or members.get("function") or "null")
        arguments = members.get("arguments") or members.get("parameters") or ("{}" if len(members) == 1 else "")
        if arguments.startswith('"'):
            arguments = json.loads(arguments)
            json.loads(arguments)
    except ValueError:
        return None
    if not (isinstance(name, str) and name and arguments.startswith("{")):
        return None
    return _Written(length, name, arguments)


def _members(written: str) -> dict[str, str]:
    """The members of a JSON object as key → JSON text of the value, as it was written. Raises ValueError."""
    json.loads(written)
    decoder = json.JSONDecoder()
    members: dict[str, str] = {}
    index = _next_value(written, written.index("{") + 1)
    while written[index] != "}":
        key, index = decoder.raw_decode(written, index)
        start = _next_value(written, index)
        _, index = decoder.raw_decode(written, start)
        members[key] = written[start:index]
        index = _next_value(written, index)
    return members


def _next_value(written: str, index: int) -> int:
    while written[index] in " \t\r\n,:":
        index += 1
    return index

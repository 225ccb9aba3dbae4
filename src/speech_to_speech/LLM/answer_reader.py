"""From the chunks of a streamed chat completion to the pieces of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from speech_to_speech.LLM.tool_calls import ToolCallParser, new_call_id
from speech_to_speech.stage_types import TextDelta, Tool, ToolCall


class AnswerReader:
    """Reads one answer in the shape of OpenAI's `chat.completion.chunk`.

    Calls arrive in two ways: as `tool_calls` where the server knows the model's format, else within the text. Without
    `tools` every text is speech. A model's reasoning (`reasoning_content`) is left out.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._names = [tool.name for tool in tools]
        self._text = ToolCallParser(self._names)
        self._structured: dict[int, _CallInPieces] = {}
        self._finish_reason: str | None = None
        self._spoke = False
        self._called = False

    @property
    def ended(self) -> bool:
        """What the model would still write is of no use."""
        return self._text.ended

    @property
    def called_only_unknown(self) -> bool:
        """The whole answer is a call of a function that does not exist; nothing was said or called."""
        if self._spoke or self._called:
            return False
        return self._text.unknown_call or any(call.name not in self._names for call in self._structured.values())

    @property
    def reason(self) -> Literal["stop", "length", "tool_calls"]:
        """Why the answer ended."""
        if self._called:
            return "tool_calls"
        return "length" if self._finish_reason == "length" else "stop"

    def feed(self, chunk: dict[str, Any]) -> list[TextDelta | ToolCall]:
        """The pieces that are decided with `chunk`."""
        pieces: list[TextDelta | ToolCall] = []
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            if text := delta.get("content"):
                pieces += self._text.feed(text) if self._names else [TextDelta(text)]
            for part in delta.get("tool_calls") or ():
                self._structured.setdefault(part.get("index", 0), _CallInPieces()).add(part)
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
        return self._noted(pieces)

    def finish(self) -> list[TextDelta | ToolCall]:
        """The last pieces. A call that the token limit cut off is left out."""
        pieces = self._text.finish()
        if self._finish_reason != "length":
            pieces += [
                ToolCall(call.call_id or new_call_id(), call.name, call.arguments or "{}")
                for _, call in sorted(self._structured.items())
                if call.name in self._names
            ]
        return self._noted(pieces)

    def _noted(self, pieces: list[TextDelta | ToolCall]) -> list[TextDelta | ToolCall]:
        for piece in pieces:
            if isinstance(piece, ToolCall):
                self._called = True
            elif piece.text.strip():
                self._spoke = True
        return pieces


class _CallInPieces:
    """One structured call, whose name comes first and whose arguments grow."""

    def __init__(self) -> None:
        self.call_id = self.name = self.arguments = ""

    def add(self, part: dict[str, Any]) -> None:
        function = part.get("function") or {}
        self.call_id = part.get("id") or self.call_id
        self.name += function.get("name") or ""
        self.arguments += function.get("arguments") or ""

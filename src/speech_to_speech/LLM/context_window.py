"""Which turns of a long conversation the model still sees."""

from __future__ import annotations

import json
from collections.abc import Sequence

from speech_to_speech.errors import ContextOverflowError
from speech_to_speech.stage_types import ChatMessage, Tool

_KEPT_SHARE = 0.6
"""Share of the prompt's room that is filled after turns were dropped; the rest is room until the next drop."""

_MESSAGE_OVERHEAD = 20
"""Characters added to a message's length when sizes are compared, for the role markers of the chat template."""


class ContextWindow:
    """The window of one conversation. Not thread-safe: used by whoever holds the conversation's slot.

    Whole turns drop, oldest first; a turn is a user message and what follows up to the next user message. System
    messages at the beginning stay. Many turns drop at once and the new beginning is then kept, so that the prompts
    of the following turns begin alike and the KV cache stays warm.
    """

    def __init__(self, context_tokens: int) -> None:
        self._context_tokens = context_tokens
        self._dropped: tuple[ChatMessage, ...] = ()

    def visible(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """`messages` without the turns dropped so far; all of them if the history is no longer the one dropped from."""
        instructions, history = _split_instructions(messages)
        if tuple(history[: len(self._dropped)]) != self._dropped:
            self._dropped = ()
        return [*instructions, *history[len(self._dropped) :]]

    def prompt_limit(self, max_tokens: int) -> int:
        """The longest prompt, in tokens, that leaves room for an answer of `max_tokens` or a quarter of the context."""
        return self._context_tokens - min(max_tokens, self._context_tokens // 4)

    def drop(self, messages: Sequence[ChatMessage], tools: Sequence[Tool], prompt_tokens: int, max_tokens: int) -> None:
        """Drop turns because the visible part of `messages` took `prompt_tokens`, more than `prompt_limit`.

        Sizes of single turns are estimated from their share of the characters, so that the caller has to look at the
        new prompt's length again. Raises `ContextOverflowError` when only the newest turn is left.
        """
        instructions, history = _split_instructions(self.visible(messages))
        turns = _split_turns(history)
        limit = self.prompt_limit(max_tokens)
        if len(turns) < 2:
            raise ContextOverflowError(
                f"the instructions and the newest turn take {prompt_tokens} tokens, but a context of "
                f"{self._context_tokens} leaves room for {limit}; shorten them or raise --llm_context_tokens"
            )
        count = turns_to_drop(
            [_characters(turn) for turn in turns],
            fixed=_characters(instructions) + sum(_tool_characters(tool) for tool in tools),
            prompt_tokens=prompt_tokens,
            target_tokens=int(limit * _KEPT_SHARE),
        )
        self._dropped += tuple(message for turn in turns[:count] for message in turn)


def turns_to_drop(sizes: Sequence[int], *, fixed: int, prompt_tokens: int, target_tokens: int) -> int:
    """How many of the oldest turns must go: at least one, never the newest.

    `sizes` and `fixed` (what always stays) are in characters; together they take `prompt_tokens`, and at most
    `target_tokens` shall remain.
    """
    tokens_per_character = prompt_tokens / max(1, fixed + sum(sizes))
    remaining = prompt_tokens - sizes[0] * tokens_per_character
    count = 1
    while count < len(sizes) - 1 and remaining > target_tokens:
        remaining -= sizes[count] * tokens_per_character
        count += 1
    return count


def _split_instructions(messages: Sequence[ChatMessage]) -> tuple[list[ChatMessage], list[ChatMessage]]:
    """The system messages at the beginning, and the rest."""
    count = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    return list(messages[:count]), list(messages[count:])


def _split_turns(history: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    """`history` cut before each user message; what precedes the first one, such as a greeting, is a turn of its own."""
    turns: list[list[ChatMessage]] = []
    for message in history:
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _characters(messages: Sequence[ChatMessage]) -> int:
    return sum(
        _MESSAGE_OVERHEAD
        + len(message.text)
        + sum(_MESSAGE_OVERHEAD + len(call.name) + len(call.arguments) for call in message.tool_calls)
        for message in messages
    )


def _tool_characters(tool: Tool) -> int:
    return _MESSAGE_OVERHEAD + len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters))

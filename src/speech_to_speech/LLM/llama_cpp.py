"""Language models in GGUF files, run by llama.cpp in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from speech_to_speech.arguments_classes.llm_arguments import LLMArguments
from speech_to_speech.backend import Requirement
from speech_to_speech.errors import StageError
from speech_to_speech.LLM.answer_reader import AnswerReader
from speech_to_speech.LLM.base import LanguageModel
from speech_to_speech.LLM.chat_request import chat_message, chat_tools
from speech_to_speech.LLM.context_window import ContextWindow
from speech_to_speech.LLM.llama_server import Completion, LlamaServer, PromptTooLongError
from speech_to_speech.LLM.slots import SlotPool
from speech_to_speech.LLM.tool_calls import SPEECH_GRAMMAR, calls_schema
from speech_to_speech.models import resolve
from speech_to_speech.stage_types import (
    ChatMessage,
    GenerateRequest,
    GenerationDone,
    GenerationPiece,
    IsCancelled,
    LanguageModelCapabilities,
    TextDelta,
    Tool,
    ToolCall,
    Usage,
)


class LlamaCpp(LanguageModel):
    """One model with a KV cache per slot. Each conversation is pinned to a slot, so its history is read only once."""

    requirements = (Requirement("xllamacpp", "xllamacpp"),)

    def __init__(self, server: LlamaServer, arguments: LLMArguments) -> None:
        self._server = server
        self._arguments = arguments
        self._slots = SlotPool(arguments.slots)
        self._windows: dict[str, ContextWindow] = {}
        self._windows_lock = threading.Lock()

    @classmethod
    def load(cls, arguments: LLMArguments, threads: int) -> LlamaCpp:
        return cls(LlamaServer(resolve("llm", arguments.model), arguments, threads), arguments)

    @property
    def capabilities(self) -> LanguageModelCapabilities:
        return LanguageModelCapabilities(prefill=True, tools=True, context_tokens=self._server.context_tokens)

    def generate(self, request: GenerateRequest, is_cancelled: IsCancelled) -> Iterator[GenerationPiece]:
        slot = self._slots.acquire(request.conversation, is_cancelled)
        generation = _Generation(
            server=self._server,
            window=self._window(request.conversation),
            slot=slot,
            request=request,
            max_tokens=self._arguments.max_tokens if request.max_tokens is None else request.max_tokens,
            temperature=self._arguments.temperature,
            is_cancelled=is_cancelled,
        )
        try:
            yield from generation.prefill() if request.prefill_only else generation.answer()
        finally:
            generation.when_ended(lambda: self._slots.free(slot))

    def release(self, conversation: str) -> None:
        self._slots.forget(conversation)
        with self._windows_lock:
            self._windows.pop(conversation, None)

    def close(self) -> None:
        self._server.close()

    def _window(self, conversation: str) -> ContextWindow:
        with self._windows_lock:
            return self._windows.setdefault(conversation, ContextWindow(self._server.context_tokens))


@dataclass
class _Generation:
    """The work of one `generate` call, on the slot it holds."""

    server: LlamaServer
    window: ContextWindow
    slot: int
    request: GenerateRequest
    max_tokens: int
    temperature: float
    is_cancelled: IsCancelled
    _completion: Completion | None = None
    _usage: Usage = field(default_factory=Usage)

    def prefill(self) -> Iterator[GenerationPiece]:
        """Read the prompt as `answer` would, so that the same prompt later finds all of it in the cache.

        With `n_predict` 0 llama.cpp still picks a token from the last logits; it costs no further pass and is ignored.
        """
        for _ in self._chunks({"n_predict": 0, **_tool_fields(self.request.tools, self.request.tool_choice)}):
            pass
        yield GenerationDone("stop", Usage(self._usage.input_tokens, self._usage.cached_tokens, output_tokens=0))

    def answer(self) -> Iterator[GenerationPiece]:
        """The answer; a call of a function that does not exist is answered by asking for words instead."""
        reader = AnswerReader(self.request.tools)
        yield from self._pieces(reader, self.request.tool_choice)
        if reader.called_only_unknown:
            reader = AnswerReader(self.request.tools)
            yield from self._pieces(reader, "none")
        yield GenerationDone(reader.reason, self._usage)

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` when llama.cpp has let go of the slot, at once if it never had it."""
        if self._completion is None:
            callback()
        else:
            self._completion.when_ended(callback)

    def _pieces(self, reader: AnswerReader, tool_choice: str) -> Iterator[TextDelta | ToolCall]:
        fields = {"n_predict": self.max_tokens, **_tool_fields(self.request.tools, tool_choice)}
        with closing(self._chunks(fields)) as chunks:
            for chunk in chunks:
                yield from reader.feed(chunk)
                if reader.ended:
                    break
        yield from reader.finish()

    def _chunks(self, fields: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        """Run the prompt; where it is too long, drop old turns until it fits."""
        while True:
            try:
                yield from self._run({**fields, "messages": self._prompt()})
                return
            except PromptTooLongError as error:
                self.window.drop(self.request.messages, self.request.tools, error.tokens, self.max_tokens)

    def _prompt(self) -> list[dict[str, Any]]:
        """The visible messages. A prefill ends with the user's turn, which some templates insist on."""
        messages = self.window.visible(self.request.messages)
        if self.request.prefill_only and not (messages and messages[-1].role in ("user", "tool")):
            messages.append(ChatMessage("user", ""))
        return [chat_message(message) for message in messages]

    def _run(self, body: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        """One run of llama.cpp. Its first chunk tells the prompt's length before anything is computed."""
        if self._completion is not None:
            self._completion.wait_ended(self.is_cancelled)
        limit = self.window.prompt_limit(self.max_tokens)
        spent = self._usage.output_tokens
        self._completion = self.server.complete(
            {
                **body,
                "id_slot": self.slot,
                "cache_prompt": True,
                "return_progress": True,
                "timings_per_token": True,
                "temperature": self.temperature,
                "chat_template_kwargs": {"enable_thinking": False},
            }
        )
        with closing(self._completion.chunks(self.is_cancelled)) as chunks:
            for chunk in chunks:
                if (prompt := chunk.get("prompt_progress")) and prompt["total"] > limit:
                    raise PromptTooLongError(prompt["total"])
                if timings := chunk.get("timings"):
                    self._usage = Usage(
                        input_tokens=timings["cache_n"] + timings["prompt_n"],
                        cached_tokens=timings["cache_n"],
                        output_tokens=spent + timings["predicted_n"],
                    )
                yield chunk


def _tool_fields(tools: tuple[Tool, ...], tool_choice: str) -> dict[str, Any]:
    """The prompt shows the tools whatever the choice, so that its beginning stays in the cache.

    llama.cpp refuses a grammar beside tools unless `tool_choice` is "none", and constrains calls only in formats it
    recognises; so a forced call, or none at all, is asked for by a grammar of ours.
    """
    if not tools:
        return {}
    shown = {"tools": chat_tools(tools), "tool_choice": "none"}
    if tool_choice == "auto":
        return {**shown, "tool_choice": "auto", "parallel_tool_calls": True}
    if tool_choice == "none":
        return {**shown, "grammar": SPEECH_GRAMMAR}
    callable_tools = [tool for tool in tools if tool_choice in ("required", tool.name)]
    if not callable_tools:
        raise StageError("llm", f"tool_choice names {tool_choice!r}, which is not among the tools")
    return {**shown, "json_schema": calls_schema(callable_tools)}

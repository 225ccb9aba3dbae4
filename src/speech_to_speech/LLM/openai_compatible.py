"""Language models behind any OpenAI-compatible server: Ollama, vLLM, llama.cpp's own, hosted ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from speech_to_speech.arguments_classes.key_file import read_key
from speech_to_speech.arguments_classes.llm_arguments import LLMArguments
from speech_to_speech.errors import ConfigurationError, ModelLoadError, StageError
from speech_to_speech.LLM.answer_reader import AnswerReader
from speech_to_speech.LLM.base import LanguageModel
from speech_to_speech.LLM.chat_request import (
    chat_message,
    chat_tool_choice,
    chat_tools,
    response_items,
    response_tool_choice,
    response_tools,
)
from speech_to_speech.LLM.context_window import ContextWindow
from speech_to_speech.LLM.http_stream import EventStreams, HTTPStatusError, StreamBrokenError
from speech_to_speech.LLM.responses_reader import ResponsesReader
from speech_to_speech.stage_types import (
    GenerateRequest,
    GenerationDone,
    GenerationPiece,
    IsCancelled,
    LanguageModelCapabilities,
    TextDelta,
    ToolCall,
    Usage,
)

KEY_VARIABLE = "S2S_LLM_API_KEY"

_TOO_LONG = ("context_length_exceeded", "exceed_context_size_error")
"""What servers call a prompt that does not fit (OpenAI's `code`, llama.cpp's `type`)."""

_RENAMED = {"max_tokens": "max_completion_tokens"}
"""Fields that newer models take by another name."""


class OpenAICompatible(LanguageModel):
    """One server and one of its models. It keeps no conversation: each request carries the whole history."""

    def __init__(self, streams: EventStreams, arguments: LLMArguments, model: str) -> None:
        self._streams = streams
        self._arguments = arguments
        self._model = model
        self._unwanted: set[str] = set()
        """Fields of the request this server's model has refused."""
        self._windows: dict[str, ContextWindow] = {}
        self._windows_lock = threading.Lock()

    @classmethod
    def check(cls, arguments: LLMArguments) -> None:
        """Ask the server for its models."""
        cls.load(arguments, threads=1).close()

    @classmethod
    def load(cls, arguments: LLMArguments, threads: int) -> OpenAICompatible:
        url = urlsplit(arguments.base_url)
        if url.scheme not in ("http", "https") or not url.netloc:
            given = f", not '{arguments.base_url}'" if arguments.base_url else ""
            raise ConfigurationError(f"--llm openai needs --llm_base_url, such as http://127.0.0.1:11434/v1{given}")
        key = read_key("--llm_api_key_file", arguments.api_key_file, KEY_VARIABLE)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        streams = EventStreams(arguments.base_url, headers, arguments.timeout_s)
        try:
            return cls(streams, arguments, _chosen_model(streams, arguments))
        except BaseException:
            streams.close()
            raise

    @property
    def capabilities(self) -> LanguageModelCapabilities:
        return LanguageModelCapabilities(prefill=False, tools=True, context_tokens=self._arguments.context_tokens)

    def generate(self, request: GenerateRequest, is_cancelled: IsCancelled) -> Iterator[GenerationPiece]:
        if request.prefill_only:  # nothing here could be read ahead
            yield GenerationDone("stop")
            return
        usage: list[Usage] = []
        reader = AnswerReader(request.tools)
        yield from self._pieces(request, request.tool_choice, reader, usage, is_cancelled)
        if reader.called_only_unknown:
            reader = AnswerReader(request.tools)
            yield from self._pieces(request, "none", reader, usage, is_cancelled)
        yield GenerationDone(reader.reason, _total(usage))

    def release(self, conversation: str) -> None:
        with self._windows_lock:
            self._windows.pop(conversation, None)

    def close(self) -> None:
        self._streams.close()

    def _pieces(
        self,
        request: GenerateRequest,
        tool_choice: str,
        reader: AnswerReader,
        usage: list[Usage],
        is_cancelled: IsCancelled,
    ) -> Iterator[TextDelta | ToolCall]:
        with closing(self._chunks(request, tool_choice, is_cancelled)) as chunks:
            for chunk in chunks:
                if counted := chunk.get("usage"):
                    usage.append(_usage(counted))
                yield from reader.feed(chunk)
                if reader.ended:
                    break
        yield from reader.finish()

    def _chunks(self, request: GenerateRequest, tool_choice: str, is_cancelled: IsCancelled) -> Any:
        """The chunks of one answer. A prompt that is too long loses old turns, a field that is refused goes."""
        with self._windows_lock:
            window = self._windows.setdefault(request.conversation, ContextWindow(self._arguments.context_tokens))
        while True:
            path, body = self._body(request, window, tool_choice)
            try:
                yield from self._events(path, body, is_cancelled)
                return
            except HTTPStatusError as error:
                if error.status == 400 and self._can_drop(error, body):
                    continue
                if error.error.get("code") in _TOO_LONG or error.error.get("type") in _TOO_LONG:
                    tokens = error.error.get("n_prompt_tokens") or self._arguments.context_tokens
                    window.drop(request.messages, request.tools, int(tokens), self._max_tokens(request))
                    continue
                raise StageError("llm", self._explained(error)) from error
            except StreamBrokenError as error:
                raise StageError("llm", f"{self._arguments.base_url}: {error}") from error

    def _events(self, path: str, body: dict[str, Any], is_cancelled: IsCancelled) -> Iterator[dict[str, Any]]:
        responses = ResponsesReader() if self._arguments.api == "responses" else None
        ended = False
        with closing(self._streams.post(path, body, is_cancelled)) as events:  # type: ignore[type-var]
            for event in events:
                if responses is not None:
                    chunk = responses.chunk(event)
                    ended = responses.ended
                else:
                    if error := event.get("error"):
                        message = error.get("message", error) if isinstance(error, dict) else error
                        raise StageError("llm", f"{self._arguments.base_url}: {message}")
                    chunk = event
                    ended = ended or any(choice.get("finish_reason") for choice in event.get("choices") or ())
                yield chunk
        if not ended:
            raise StreamBrokenError("the server went away in the middle of its answer")

    def _body(self, request: GenerateRequest, window: ContextWindow, tool_choice: str) -> tuple[str, dict[str, Any]]:
        messages = window.visible(request.messages)
        body: dict[str, Any] = {"model": self._model, "stream": True, "temperature": self._arguments.temperature}
        if self._arguments.api == "responses":
            path = "/responses"
            body |= {"input": [item for message in messages for item in response_items(message)], "store": False}
            body["max_output_tokens"] = self._max_tokens(request)
            if request.tools:
                body |= {"tools": response_tools(request.tools), "tool_choice": response_tool_choice(tool_choice)}
        else:
            path = "/chat/completions"
            body |= {"messages": [chat_message(message) for message in messages]}
            body |= {"stream_options": {"include_usage": True}, "max_tokens": self._max_tokens(request)}
            if request.tools:
                body |= {"tools": chat_tools(request.tools), "tool_choice": chat_tool_choice(tool_choice)}
        for field in self._unwanted & body.keys():
            value = body.pop(field)
            if field in _RENAMED:
                body[_RENAMED[field]] = value
        return path, body

    def _max_tokens(self, request: GenerateRequest) -> int:
        return self._arguments.max_tokens if request.max_tokens is None else request.max_tokens

    def _can_drop(self, error: HTTPStatusError, body: dict[str, Any]) -> bool:
        """Whether the server complains of a field it can do without; reasoning models refuse `temperature`."""
        field = error.error.get("param")
        if field not in ("temperature", "max_tokens", "stream_options") or field not in body:
            return False
        self._unwanted.add(field)
        return True

    def _explained(self, error: HTTPStatusError) -> str:
        url = self._arguments.base_url
        if error.status in (401, 403):
            return _key_refused(url, error)
        if error.status == 404:
            hint = "" if urlsplit(url).path.strip("/") else "; should --llm_base_url end in /v1?"
            return f"{url} does not serve the model '{self._model}' ({error}){hint}"
        if error.status == 429:
            wait = "later" if error.retry_after_s is None else f"after {error.retry_after_s:.0f} s"
            return f"{url} takes no more requests now, try again {wait} ({error})"
        return f"{url}: {error}"


def _chosen_model(streams: EventStreams, arguments: LLMArguments) -> str:
    """The model asked for; without one, the only one there is. Finds out on the way whether the server can be used."""
    try:
        listed = [str(model.get("id", "")) for model in streams.get("/models").get("data") or ()]
    except StreamBrokenError as error:
        raise ModelLoadError(f"--llm_base_url {arguments.base_url}: {error}; is the server running?") from error
    except HTTPStatusError as error:
        if error.status in (401, 403):
            raise ModelLoadError(_key_refused(arguments.base_url, error)) from error
        listed = []  # not every server lists its models
    if arguments.model != LLMArguments().model or arguments.model in listed:
        return arguments.model
    if len(listed) == 1:
        return listed[0]
    choice = f"one of: {', '.join(sorted(listed)[:20])}" if listed else "the name of one of its models"
    raise ConfigurationError(f"--llm openai needs --llm_model, {choice}")


def _key_refused(url: str, error: HTTPStatusError) -> str:
    return f"{url} refuses the key ({error}); give it with --llm_api_key_file FILE or {KEY_VARIABLE}"


def _usage(counted: dict[str, Any]) -> Usage:
    details = counted.get("prompt_tokens_details") or {}
    return Usage(
        input_tokens=counted.get("prompt_tokens") or 0,
        cached_tokens=details.get("cached_tokens") or 0,
        output_tokens=counted.get("completion_tokens") or 0,
    )


def _total(usage: list[Usage]) -> Usage:
    last = usage[-1] if usage else Usage()
    return Usage(last.input_tokens, last.cached_tokens, sum(part.output_tokens for part in usage))

"""llama.cpp's server inside this process, reachable by this process only.

The Python package `xllamacpp` embeds the server whole. Its HTTP side cannot be switched off, so it listens on a unix
socket in a private folder; requests do not go through it but through direct calls.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeAlias

from speech_to_speech.arguments_classes.llm_arguments import LLMArguments
from speech_to_speech.errors import Cancelled, ModelLoadError, StageError
from speech_to_speech.stage_types import IsCancelled

_CANCEL_POLL_S = 0.02

_LONGEST_SOCKET_PATH = 100
"""Bytes; `sockaddr_un` holds 104 (macOS) to 108 (Linux), the final zero included."""

_SOME_TOKEN = 1

_END = None


class PromptTooLongError(Exception):
    """The prompt of `tokens` tokens is longer than it may be."""

    def __init__(self, tokens: int) -> None:
        super().__init__(f"{tokens} tokens")
        self.tokens = tokens


_Handle: TypeAlias = Callable[[str, Callable[[str], bool]], None]
"""Takes a request in JSON and a callback for each chunk, which returns true to stop. Blocks until the end."""


class Completion:
    """One chat completion on its way, run by one of `threads`.

    llama.cpp looks at a stop after each batch and then finishes the batch it has begun meanwhile, so that a stopped
    completion computes two more batches of the prompt, or two tokens of the answer, at most.
    """

    def __init__(self, threads: ThreadPoolExecutor, handle: _Handle, body: dict[str, Any]) -> None:
        self._arrived: queue.SimpleQueue[str | Exception | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._ended: Future[None] = threads.submit(self._run, handle, json.dumps({**body, "stream": True}))

    def chunks(self, is_cancelled: IsCancelled) -> Generator[dict[str, Any], None, None]:
        """The chunks in the shape of OpenAI's `chat.completion.chunk`, with llama.cpp's `prompt_progress` before and
        after each batch of the prompt, and its `timings`.

        Raises `Cancelled` within 20 ms of a cancel, `PromptTooLongError`, and `StageError` for any other failure.
        """
        try:
            while True:
                try:
                    arrived = self._arrived.get(timeout=_CANCEL_POLL_S)
                except queue.Empty:
                    arrived = ""
                if is_cancelled():
                    raise Cancelled("cancelled while generating")
                if isinstance(arrived, Exception):
                    raise StageError("llm", f"llama.cpp: {_one_line(arrived)}") from arrived
                if arrived is _END:
                    if self._stop.is_set():
                        raise Cancelled("the language model was closed")
                    return
                if arrived:
                    yield _checked(json.loads(arrived))
        finally:
            self.stop()

    def stop(self) -> None:
        """Have llama.cpp stop. Returns at once."""
        self._stop.set()

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` when llama.cpp has let go of the slot, at once if it has already."""
        self._ended.add_done_callback(lambda _: callback())

    def wait_ended(self, is_cancelled: IsCancelled) -> None:
        """Wait until llama.cpp has let go of the slot. Raises `Cancelled`."""
        while not wait([self._ended], timeout=_CANCEL_POLL_S).done:
            if is_cancelled():
                raise Cancelled("cancelled between two runs")

    def _run(self, handle: _Handle, body: str) -> None:
        try:
            handle(body, self._on_chunk)
        except Exception as error:  # the library throws what its JSON, template and grammar code throws
            self._arrived.put(error)
        finally:
            self._arrived.put(_END)

    def _on_chunk(self, chunk: str) -> bool:
        self._arrived.put(chunk)
        return self._stop.is_set()


class LlamaServer:
    """A loaded model with `slots` KV caches of `context_tokens` each."""

    def __init__(self, model: Path, arguments: LLMArguments, threads: int) -> None:
        if not model.is_file():
            raise ModelLoadError(f"llm: there is no file {model}")
        self._folder = tempfile.TemporaryDirectory(prefix="s2s-", ignore_cleanup_errors=True)
        self._running: set[Completion] = set()
        self._threads = ThreadPoolExecutor(arguments.slots, thread_name_prefix="llm")
        try:
            self._server = _start(model, arguments, threads, Path(self._folder.name))
        except BaseException:
            self._threads.shutdown()
            self._folder.cleanup()
            raise
        self.context_tokens = self._real_context(arguments.context_tokens)
        """Tokens of one slot: what was asked for, or what the model was trained on if that is less."""

    def complete(self, body: dict[str, Any]) -> Completion:
        """Start a chat completion in the slot that `body` names as `id_slot`. From any thread; a slot's previous
        completion must have ended."""
        completion = Completion(self._threads, self._server.handle_chat_completions, body)
        self._running.add(completion)
        completion.when_ended(lambda: self._running.discard(completion))
        return completion

    def close(self) -> None:
        """Stop what runs, free the model, remove the socket."""
        for completion in list(self._running):
            completion.stop()
        self._threads.shutdown()
        del self._server
        self._folder.cleanup()

    def _real_context(self, wanted: int) -> int:
        """llama.cpp tells a slot's true size only in its refusal of a longer prompt, so it is asked to refuse one."""
        replies: list[dict[str, Any]] = []

        def on_reply(reply: str) -> bool:
            replies.append(json.loads(reply))
            return True

        prompt = [_SOME_TOKEN] * (wanted + 1)
        body = {"prompt": prompt, "n_predict": 0, "id_slot": 0, "return_progress": True, "stream": True}
        self._server.handle_completions(json.dumps(body), on_reply)
        return min(wanted, int(replies[0].get("error", {}).get("n_ctx", wanted)))


def _start(model: Path, arguments: LLMArguments, threads: int, folder: Path) -> Any:
    try:
        import xllamacpp
    except (ImportError, OSError) as error:  # OSError: its native library does not load on this machine
        raise ModelLoadError(f"llm: llama.cpp does not load ({error}); try: pip install --upgrade xllamacpp") from error
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.n_parallel = arguments.slots
    parameters.n_ctx = arguments.context_tokens * arguments.slots
    parameters.kv_unified = False
    parameters.cache_ram_mib = arguments.cache_ram_mib
    parameters.n_batch = parameters.n_ubatch = max(arguments.batch_tokens, arguments.slots)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.prefill_assistant = False
    parameters.verbosity = -1
    _listen_privately(parameters, folder / "llama.sock")
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise ModelLoadError(
            f"llm: llama.cpp cannot load {model}: not a GGUF file of a model it knows, or not enough memory"
        ) from error


def _listen_privately(parameters: Any, path: Path) -> None:
    """A unix socket only this user can reach; where there is none, a loopback port that asks for a random key."""
    parameters.ui = parameters.endpoint_slots = parameters.endpoint_props = parameters.endpoint_metrics = False
    parameters.n_threads_http = 1
    parameters.api_keys = [secrets.token_urlsafe(32)]
    if hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
        parameters.hostnames = [str(path)]
    else:
        parameters.hostnames, parameters.port = ["127.0.0.1"], 0


def _checked(chunk: dict[str, Any]) -> dict[str, Any]:
    """llama.cpp returns errors as a chunk: `{"error": {"code", "message", "type", …}}`."""
    if (error := chunk.get("error")) is None:
        return chunk
    if error.get("type") == "exceed_context_size_error":
        raise PromptTooLongError(int(error["n_prompt_tokens"]))
    raise StageError("llm", f"llama.cpp: {error.get('message', error)}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())

"""The OpenAI-compatible backend over real HTTP: against a scripted server, and against llama.cpp's own."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from speech_to_speech.arguments_classes.llm_arguments import LLMArguments
from speech_to_speech.errors import Cancelled, ConfigurationError, ContextOverflowError, ModelLoadError, StageError
from speech_to_speech.LLM.openai_compatible import OpenAICompatible
from speech_to_speech.models import resolve
from speech_to_speech.stage_types import (
    ChatMessage,
    GenerateRequest,
    GenerationDone,
    GenerationPiece,
    TextDelta,
    Tool,
    ToolCall,
    Usage,
)

Handler = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]

WEATHER = Tool("get_weather", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})
QUESTION = (ChatMessage("system", "Be brief."), ChatMessage("user", "What is the capital of France?"))


class ScriptedServer:
    """Answers each POST with the next handler (the last one stays), and keeps what it was sent."""

    def __init__(self, *handlers: Handler, models: tuple[str, ...] = ("scripted",)) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.disconnected = threading.Event()
        self._handlers = list(handlers)
        self._models = models

    async def post(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        handler = self._handlers.pop(0) if len(self._handlers) > 1 else self._handlers[0]
        try:
            return await handler(request, body)
        except (asyncio.CancelledError, ConnectionError):
            self.disconnected.set()
            raise

    async def models(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") == "Bearer wrong":
            return web.json_response({"error": {"message": "Incorrect API key"}}, status=401)
        return web.json_response({"data": [{"id": name} for name in self._models]})


@contextmanager
def served(server: ScriptedServer) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_get("/v1/models", server.models)
        app.router.add_post("/v1/chat/completions", server.post)
        app.router.add_post("/v1/responses", server.post)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner

    runner = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def model(server: ScriptedServer, **options: Any) -> Iterator[OpenAICompatible]:
    with served(server) as url:
        loaded = OpenAICompatible.load(LLMArguments(base_url=url, **options), threads=1)
        try:
            yield loaded
        finally:
            loaded.close()


def stream(*events: dict[str, Any] | str | float, cut: bool = False) -> Handler:
    """Server-sent events; a number is a pause in seconds. With `cut` the connection breaks at the end."""

    async def handler(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            if isinstance(event, float):
                await asyncio.sleep(event)
                continue
            text = event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n"
            await response.write(text.encode())
        if cut:
            assert request.transport is not None
            request.transport.close()
        return response

    return handler


def refusal(status: int, error: dict[str, Any], **headers: str) -> Handler:
    async def handler(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": error}, status=status, headers=headers)

    return handler


def said(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


def called(index: int, **part: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, **part}]}}]}


def ended(reason: str = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 16}},
}
PARIS = stream(said("Par"), said("is."), ended(), USAGE, "data: [DONE]\n\n")


def pieces(loaded: OpenAICompatible, **fields: Any) -> list[GenerationPiece]:
    request = replace(GenerateRequest(token=1, conversation="c", messages=QUESTION), **fields)
    return list(loaded.generate(request, lambda: False))


def text_of(made: list[GenerationPiece]) -> str:
    return "".join(piece.text for piece in made if isinstance(piece, TextDelta))


def test_an_answer_streams_with_its_usage() -> None:
    server = ScriptedServer(PARIS)
    with model(server, model="scripted", temperature=0.3) as loaded:
        made = pieces(loaded, max_tokens=50)

    assert made == [TextDelta("Par"), TextDelta("is."), GenerationDone("stop", Usage(20, 16, 3))]
    [body] = server.bodies
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the capital of France?"},
    ]
    expected = {"model": "scripted", "max_tokens": 50, "temperature": 0.3, "stream": True}
    assert {key: body[key] for key in expected} == expected
    assert "tools" not in body


def test_events_may_be_cut_anywhere_and_comments_mean_nothing() -> None:
    raw = ": ping\r\n\r\ndata: " + json.dumps(said("Grüße")) + "\n\n" + "data:" + json.dumps(ended()) + "\n\n"
    characters = [character for character in raw]
    with model(ScriptedServer(stream(*characters))) as loaded:
        assert text_of(pieces(loaded)) == "Grüße"


def test_calls_come_in_pieces_beside_speech() -> None:
    server = ScriptedServer(
        stream(
            said("Let me see."),
            called(0, id="call_a", function={"name": "get_weather", "arguments": ""}),
            called(0, function={"arguments": '{"city":'}),
            called(1, id="call_b", function={"name": "get_weather", "arguments": '{"city": "Rome"}'}),
            called(0, function={"arguments": ' "Paris"}'}),
            ended("tool_calls"),
        )
    )
    with model(server) as loaded:
        made = pieces(loaded, tools=(WEATHER,), tool_choice="get_weather")

    calls = [piece for piece in made if isinstance(piece, ToolCall)]
    assert calls == [
        ToolCall("call_a", "get_weather", '{"city": "Paris"}'),
        ToolCall("call_b", "get_weather", '{"city": "Rome"}'),
    ]
    assert text_of(made) == "Let me see."
    assert made[-1] == GenerationDone("tool_calls")
    assert server.bodies[0]["tool_choice"] == {"type": "function", "function": {"name": "get_weather"}}


def test_results_of_calls_are_sent_back() -> None:
    server = ScriptedServer(PARIS)
    history = (
        *QUESTION,
        ChatMessage("assistant", "", tool_calls=(ToolCall("call_a", "get_weather", "{}"),)),
        ChatMessage("tool", "sunny", call_id="call_a"),
    )
    with model(server) as loaded:
        pieces(loaded, messages=history)

    assert server.bodies[0]["messages"][-2]["tool_calls"][0]["id"] == "call_a"
    assert server.bodies[0]["messages"][-1] == {"role": "tool", "content": "sunny", "tool_call_id": "call_a"}


def test_the_responses_interface_is_spoken_too() -> None:
    item = {"id": "fc_1", "type": "function_call", "call_id": "call_a", "name": "get_weather", "arguments": ""}
    end = {
        "type": "response.completed",
        "response": {
            "usage": {"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 2}},
        },
    }
    server = ScriptedServer(
        stream(
            {"type": "response.created", "response": {}},
            {"type": "response.output_text.delta", "item_id": "m", "delta": "One moment."},
            {"type": "response.output_item.added", "output_index": 1, "item": item},
            {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": '{"city": '},
            {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": '"Oslo"}'},
            {"type": "response.output_item.done", "output_index": 1, "item": {**item, "arguments": '{"city": "Oslo"}'}},
            end,
        )
    )
    history = (
        *QUESTION,
        ChatMessage("assistant", "Wait.", tool_calls=(ToolCall("call_0", "get_weather", "{}"),)),
        ChatMessage("tool", "sunny", call_id="call_0"),
    )
    with model(server, api="responses") as loaded:
        made = pieces(loaded, messages=history, tools=(WEATHER,), tool_choice="required", max_tokens=70)

    assert made == [
        TextDelta("One moment."),
        ToolCall("call_a", "get_weather", '{"city": "Oslo"}'),
        GenerationDone("tool_calls", Usage(9, 2, 4)),
    ]
    body = server.bodies[0]
    assert (body["max_output_tokens"], body["tool_choice"], body["store"]) == (70, "required", False)
    assert body["tools"][0]["name"] == "get_weather"
    assert body["input"][-3:] == [
        {"role": "assistant", "content": "Wait."},
        {"type": "function_call", "call_id": "call_0", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_0", "output": "sunny"},
    ]


def test_a_response_that_fails_or_hits_its_limit_says_so() -> None:
    failed = {"type": "response.failed", "response": {"error": {"message": "out of memory"}}}
    with (
        model(ScriptedServer(stream(failed)), api="responses") as loaded,
        pytest.raises(StageError, match="out of memory"),
    ):
        pieces(loaded)
    limit = {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}
    with model(ScriptedServer(stream(limit)), api="responses") as loaded:
        assert pieces(loaded) == [GenerationDone("length")]


def test_a_cancel_closes_the_stream() -> None:
    server = ScriptedServer(stream(said("One"), 20.0, said(" two")))
    with model(server) as loaded:
        cancelled = threading.Event()
        made = loaded.generate(GenerateRequest(token=1, conversation="c", messages=QUESTION), cancelled.is_set)
        assert next(made) == TextDelta("One")
        cancelled.set()
        with pytest.raises(Cancelled):
            next(made)
        assert server.disconnected.wait(5)


def test_what_fails_before_the_first_token_is_tried_again() -> None:
    server = ScriptedServer(
        refusal(503, {"message": "loading"}), refusal(429, {"message": "busy"}, **{"Retry-After": "0"}), PARIS
    )
    with model(server) as loaded:
        assert text_of(pieces(loaded)) == "Paris."
    assert len(server.bodies) == 3


def test_after_the_first_token_nothing_is_tried_again() -> None:
    server = ScriptedServer(stream(said("Par"), cut=True), PARIS)
    with model(server) as loaded:
        made = loaded.generate(GenerateRequest(token=1, conversation="c", messages=QUESTION), lambda: False)
        assert next(made) == TextDelta("Par")
        with pytest.raises(StageError, match=r"^llm: http://127\.0\.0\.1:\d+/v1: "):
            next(made)
    assert len(server.bodies) == 1


def test_a_stream_that_ends_too_early_is_no_answer() -> None:
    with (
        model(ScriptedServer(stream(said("Par")))) as loaded,
        pytest.raises(StageError, match="went away in the middle of its answer"),
    ):
        pieces(loaded)


def test_an_error_within_the_stream_is_raised() -> None:
    with (
        model(ScriptedServer(stream(said("Par"), {"error": {"message": "CUDA out of memory"}}))) as loaded,
        pytest.raises(StageError, match="CUDA out of memory"),
    ):
        pieces(loaded)


def test_a_server_that_falls_silent_is_given_up() -> None:
    with model(ScriptedServer(stream(said("Par"), 20.0)), timeout_s=0.3) as loaded:
        began = time.monotonic()
        with pytest.raises(StageError, match="did not answer in time"):
            pieces(loaded)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (refusal(401, {"message": "Incorrect key"}), r"refuses the key .*--llm_api_key_file FILE or S2S_LLM_API_KEY"),
        (refusal(404, {"message": "no such model"}), "does not serve the model 'missing'.*no such model"),
        (refusal(429, {"message": "slow down"}, **{"Retry-After": "7"}), "try again after 7 s .*slow down"),
        (refusal(400, {"message": "bad request"}), "HTTP 400: bad request"),
    ],
)
def test_refusals_say_what_to_do(handler: Handler, message: str) -> None:
    server = ScriptedServer(handler)
    with model(server, model="missing") as loaded, pytest.raises(StageError, match=message):
        pieces(loaded)
    assert len(server.bodies) == 1


def test_fields_that_newer_models_refuse_are_left_out_or_renamed() -> None:
    server = ScriptedServer(
        refusal(400, {"message": "Unsupported value", "param": "temperature"}),
        refusal(400, {"message": "Unsupported parameter", "param": "max_tokens"}),
        PARIS,
    )
    with model(server) as loaded:
        assert text_of(pieces(loaded, max_tokens=9)) == "Paris."
        assert text_of(pieces(loaded, max_tokens=9)) == "Paris."

    assert len(server.bodies) == 4
    assert "temperature" not in server.bodies[3] and "max_tokens" not in server.bodies[3]
    assert server.bodies[3]["max_completion_tokens"] == 9


def test_a_prompt_that_is_too_long_loses_its_oldest_turns() -> None:
    too_long = {"message": "too long", "code": "context_length_exceeded"}
    server = ScriptedServer(refusal(400, too_long), PARIS)
    history = [ChatMessage("system", "Be brief.")]
    for turn in range(20):
        history += [ChatMessage("user", f"Question {turn} " + "word " * 50), ChatMessage("assistant", "Yes.")]
    history.append(ChatMessage("user", "And now?"))
    with model(server) as loaded:
        assert text_of(pieces(loaded, messages=tuple(history))) == "Paris."
    first, second = (body["messages"] for body in server.bodies)
    assert len(second) < len(first)
    assert second[0] == first[0] and second[-1] == first[-1]
    with model(ScriptedServer(refusal(400, too_long))) as loaded, pytest.raises(ContextOverflowError):
        pieces(loaded)


def test_reading_ahead_costs_nothing() -> None:
    server = ScriptedServer(PARIS)
    with model(server) as loaded:
        assert pieces(loaded, prefill_only=True) == [GenerationDone("stop")]
    assert server.bodies == []


def test_the_key_is_sent_and_a_wrong_one_stops_the_start(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("secret\n")
    server = ScriptedServer(PARIS)
    with model(server, api_key_file=str(key)) as loaded:
        pieces(loaded)
    assert server.headers[0]["Authorization"] == "Bearer secret"

    key.write_text("wrong")
    with pytest.raises(ModelLoadError, match="refuses the key"), model(server, api_key_file=str(key)):
        pass
    key.write_text("")
    with pytest.raises(ConfigurationError, match="first line is empty"), model(server, api_key_file=str(key)):
        pass


def test_the_model_is_found_or_asked_for() -> None:
    with model(ScriptedServer(PARIS, models=("only",))) as loaded:
        pieces(loaded)
    for names, message in [(("b", "a"), "one of: a, b"), ((), "the name of one of its models")]:
        with pytest.raises(ConfigurationError, match=message), model(ScriptedServer(PARIS, models=names)):
            pass


@pytest.mark.parametrize("url", ["", "localhost:11434", "ftp://127.0.0.1/v1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="--llm_base_url"):
        OpenAICompatible.load(LLMArguments(base_url=url), threads=1)


def test_a_server_that_is_not_there_stops_the_start() -> None:
    with served(ScriptedServer(PARIS)) as url:
        pass
    with pytest.raises(ModelLoadError, match=r"is the server running\?"):
        OpenAICompatible.load(LLMArguments(base_url=url), threads=1)


def test_llama_cpps_own_server_answers() -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(resolve("llm", "smollm2"))
    parameters.n_ctx, parameters.n_parallel, parameters.verbosity = 1024, 1, -1
    parameters.cpuparams.n_threads = 2
    parameters.hostnames, parameters.port, parameters.api_keys = ["127.0.0.1"], 0, ["k"]
    server = xllamacpp.Server(parameters)
    loaded = None
    try:
        arguments = LLMArguments(base_url=f"{server.listening_address}/v1", max_tokens=24)
        with pytest.raises(ModelLoadError, match="refuses the key"):
            OpenAICompatible.load(arguments, threads=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("S2S_LLM_API_KEY", "k")
            loaded = OpenAICompatible.load(arguments, threads=1)
        made = pieces(loaded)
        assert len(text_of(made)) > 3
        done = made[-1]
        assert isinstance(done, GenerationDone)
        assert done.usage.input_tokens > 5 and 0 < done.usage.output_tokens <= 24
    finally:
        if loaded is not None:
            loaded.close()
        del server

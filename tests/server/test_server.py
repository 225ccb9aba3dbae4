"""The server over real sockets, without models: who may connect, hostile input, limits, and its end."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest

from scripted_stages import EchoLLM, scripted_stages
from server_event_oracle import check_order, check_server_event
from speech_to_speech.arguments_classes import ServerArguments
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.runtime.inline import InlineRuntime
from speech_to_speech.server.access import access_rules
from speech_to_speech.server.app import Server

ARGUMENTS = ServerArguments(port=0, audio_lead_ms=0)


@asynccontextmanager
async def running(arguments: ServerArguments = ARGUMENTS) -> AsyncIterator[Server]:
    runtime = InlineRuntime(scripted_stages())
    server = Server(runtime, arguments, model="scripted")
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
        runtime.close()


@asynccontextmanager
async def connected(server: Server, **options: Any) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with aiohttp.ClientSession() as http:
        url = f"http://127.0.0.1:{server.port}/v1/realtime?model=any"
        async with http.ws_connect(url, max_msg_size=0, **options) as socket:
            yield socket


async def receive(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    message = await socket.receive(timeout=20)
    assert message.type is aiohttp.WSMsgType.TEXT, message
    event: dict[str, Any] = json.loads(message.data)
    check_server_event(event)
    return event


async def until(socket: aiohttp.ClientWebSocketResponse, kind: str) -> list[dict[str, Any]]:
    events = [await receive(socket)]
    while events[-1]["type"] != kind:
        events.append(await receive(socket))
    return events


def append(samples: Any) -> dict[str, Any]:
    pcm = (np.asarray(samples) * 32767).astype("<i2").tobytes()
    return {"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()}


def speech(seconds: float) -> Any:
    return 0.5 * np.sin(2 * np.pi * 300 * np.arange(int(24_000 * seconds)) / 24_000)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


def test_a_spoken_turn_over_a_socket() -> None:
    async def scenario() -> None:
        async with running() as server, connected(server) as socket:
            await socket.send_json(append(np.concatenate([np.zeros(12_000), speech(1.0), np.zeros(48_000)])))
            events = await until(socket, "response.done")
            check_order(events)
            transcript = [e for e in events if e["type"] == "response.output_audio_transcript.done"]
            assert transcript[0]["transcript"] == "You said hello."
            audio = [base64.b64decode(e["delta"]) for e in events if e["type"] == "response.output_audio.delta"]
            assert abs(len(b"".join(audio)) - 24_000) < 960  # half a second at 24 kHz, 16 bit

    run(scenario)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", "invalid_json"),
        ("[1]", "invalid_json"),
        ('"x"', "invalid_json"),
        ("[" * 100_000, "invalid_json"),
        (b"binary", "invalid_json"),
        ('{"type": "nonsense"}', "invalid_value"),
        ('{"type": ["a", "list"]}', "invalid_value"),
        ('{"type": "input_audio_buffer.append", "audio": "!!"}', "invalid_value"),
        ('{"type": "input_audio_buffer.append", "audio": "AAAA"}', "invalid_value"),  # 3 bytes
        ('{"type": "session.update", "session": "x"}', "invalid_value"),
        (
            f'{{"type": "session.update", "session": {{"type": "realtime", "model": {2**70}, "nope": 1}}}}',
            "unknown_parameter",
        ),
        ('{"type": "conversation.item.create"}', "missing_required_parameter"),
        ('{"type": "response.create", "response": {"max_output_tokens": -1}}', "invalid_value"),
    ],
)
def test_hostile_frames_get_an_error_and_the_session_goes_on(frame: str | bytes, code: str) -> None:
    async def scenario() -> None:
        async with running() as server, connected(server) as socket:
            await receive(socket)
            if isinstance(frame, bytes):
                await socket.send_bytes(frame)
            else:
                await socket.send_str(frame)
            error = await receive(socket)
            assert (error["type"], error["error"]["code"]) == ("error", code)
            await socket.send_json({"type": "response.create"})
            assert (await until(socket, "response.done"))[-1]["response"]["status"] == "completed"

    run(scenario)


def test_fifteen_mebibytes_in_one_append_are_taken() -> None:
    async def scenario() -> None:
        async with running() as server, connected(server) as socket:
            await receive(socket)
            await socket.send_json(append(np.zeros(15 * 1024 * 1024 // 2)))
            await socket.send_json({"type": "input_audio_buffer.clear"})
            assert (await receive(socket))["type"] == "input_audio_buffer.cleared"

    run(scenario)


def test_more_than_fifteen_mebibytes_are_refused_by_name() -> None:
    async def scenario() -> None:
        async with running() as server, connected(server) as socket:
            await receive(socket)
            await socket.send_json(append(np.zeros(16 * 1024 * 1024 // 2)) | {"event_id": "mine"})
            error = (await receive(socket))["error"]
            assert (error["param"], error["event_id"]) == ("audio", "mine")
            assert "15 MiB" in error["message"]

    run(scenario)


def test_a_message_over_the_wire_limit_closes_with_1009() -> None:
    async def scenario() -> None:
        async with running() as server, connected(server) as socket:
            await receive(socket)
            await socket.send_str("x" * (33 * 1024 * 1024))
            message = await socket.receive(timeout=20)
            assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
            assert socket.close_code == 1009

    run(scenario)


def test_a_full_server_says_so_and_closes_with_4000() -> None:
    async def scenario() -> None:
        async with running(replace(ARGUMENTS, max_sessions=1)) as server, connected(server) as first:
            await receive(first)
            async with connected(server) as second:
                error = await receive(second)
                assert error["error"]["code"] == "session_limit_exceeded"
                await second.receive(timeout=20)
                assert second.close_code == 4000
            await first.send_json({"type": "response.create"})
            await until(first, "response.done")

    run(scenario)


def test_a_slot_is_free_again_after_a_client_vanishes() -> None:
    async def scenario() -> None:
        async with running(replace(ARGUMENTS, max_sessions=1)) as server:
            for _ in range(5):
                async with connected(server) as socket:
                    await receive(socket)
                    await socket.send_json({"type": "response.create"})
                while server.sessions:  # noqa: ASYNC110  # the server tells nobody when a session ends
                    await asyncio.sleep(0.01)
            language_model = server._runtime.stages.llm
            assert isinstance(language_model, EchoLLM)
            assert len(set(language_model.released)) == 5

    run(scenario)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_a_foreign_web_page_cannot_connect(headers: dict[str, str], status: int) -> None:
    async def scenario() -> None:
        async with running() as server:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with connected(server, headers=headers):
                    pass
            assert refused.value.status == status

    run(scenario)


def test_an_allowed_origin_connects() -> None:
    async def scenario() -> None:
        origin = "https://app.example"
        async with (
            running(replace(ARGUMENTS, allowed_origins=origin)) as server,
            connected(server, headers={"Origin": origin}) as socket,
        ):
            assert (await receive(socket))["type"] == "session.created"

    run(scenario)


def test_a_server_with_a_key_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2S_API_KEY", "secret")

    async def scenario() -> None:
        async with running() as server:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with connected(server, headers={"Authorization": "Bearer wrong"}):
                    pass
            assert refused.value.status == 401
            async with connected(server, headers={"Authorization": "Bearer secret"}) as socket:
                await receive(socket)
            browser = ("realtime", "openai-insecure-api-key.secret")
            async with connected(server, protocols=browser) as socket:
                await receive(socket)
                assert socket.protocol == "realtime"

    run(scenario)


def test_another_host_without_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("S2S_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="--api_key_file"):
        access_rules(ServerArguments(host="0.0.0.0"))


def test_a_taken_port_is_one_line() -> None:
    async def scenario() -> None:
        async with running() as server:
            arguments = replace(ARGUMENTS, port=server.port)
            with pytest.raises(ConfigurationError, match=f"127.0.0.1:{server.port}"):
                async with running(arguments):
                    pass

    run(scenario)


def test_health_counts_the_sessions() -> None:
    async def scenario() -> None:
        async with running() as server, connected(server), aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{server.port}/health") as response:
                health = await response.json()
            assert (health["status"], health["sessions"]) == ("ok", 1)

    run(scenario)


def test_stopping_tells_the_clients() -> None:
    async def scenario() -> None:
        async with running() as server, connected(server) as socket:
            await receive(socket)
            stopping = asyncio.create_task(server.stop())
            message = await socket.receive(timeout=10)
            assert message.type is aiohttp.WSMsgType.CLOSE
            assert message.data == 1001
            await stopping

    run(scenario)


def test_an_unusable_model_stops_serve_before_it_is_ready(tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    result = subprocess.run(
        [sys.executable, "-m", "speech_to_speech.cli", "serve", "--port", "0", "--vad_model", str(broken)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    assert "ready" not in result.stdout
    assert str(broken) in result.stderr.splitlines()[-1]


def test_numbers_beyond_64_bits_come_back_as_they_were_sent() -> None:
    async def scenario() -> None:
        async with running() as server, connected(server) as socket:
            await receive(socket)
            tracing = {"metadata": {"n": 2**70}}
            await socket.send_json({"type": "session.update", "session": {"type": "realtime", "tracing": tracing}})
            message = await socket.receive(timeout=20)
            assert json.loads(message.data)["session"]["tracing"] == tracing

    run(scenario)

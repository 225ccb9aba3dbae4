from __future__ import annotations

import asyncio

import pytest

from client.scripted_realtime_server import ScriptedServer, serving
from speech_to_speech.client.realtime_client import connect, realtime_url
from speech_to_speech.errors import ConfigurationError, SpeechToSpeechError


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("ws://127.0.0.1:8765", "ws://127.0.0.1:8765/v1/realtime"),
        ("ws://127.0.0.1:8765/", "ws://127.0.0.1:8765/v1/realtime"),
        ("http://host:1/v1", "ws://host:1/v1/realtime"),
        ("http://host:1/v1/realtime", "ws://host:1/v1/realtime"),
        ("https://host/v1/realtime?model=m", "wss://host/v1/realtime?model=m"),
        ("wss://host/other/realtime", "wss://host/other/realtime"),
        ("host:8765", "ws://host:8765/v1/realtime"),
        ("ws://[::1]:8765", "ws://[::1]:8765/v1/realtime"),
    ],
)
def test_every_usual_form_of_the_address_is_understood(url: str, meant: str) -> None:
    assert realtime_url(url) == meant


@pytest.mark.parametrize("url", ["", "ftp://host", "ws://", "ws://host:port", "ws://[::1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="expected an address such as"):
        realtime_url(url)


async def nothing(_server: ScriptedServer) -> None:
    pass


def first_event(require_key: str = "") -> dict[str, object]:
    async def talk() -> dict[str, object]:
        async with serving(nothing, require_key=require_key) as server, connect(server.url) as client:
            async for event in client.events():
                return event
        raise AssertionError("no event")

    return asyncio.run(talk())


def test_the_key_in_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2S_API_KEY", "secret")
    assert first_event(require_key="secret")["type"] == "session.created"


def test_a_server_that_wants_a_key_is_named_with_where_to_put_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("S2S_API_KEY", raising=False)
    with pytest.raises(SpeechToSpeechError, match=r"asks for an API key: .* S2S_API_KEY$"):
        first_event(require_key="secret")


def test_an_address_nobody_listens_on_is_one_line() -> None:
    async def talk() -> None:
        async with connect("ws://127.0.0.1:1"):
            raise AssertionError("connected")

    with pytest.raises(SpeechToSpeechError, match=r"^cannot connect to ws://127\.0\.0\.1:1/v1/realtime: .*refused"):
        asyncio.run(talk())


def test_a_path_that_is_no_realtime_server_is_one_line() -> None:
    async def talk() -> None:
        async with serving(nothing) as server, connect(f"{server.url}/v2"):
            raise AssertionError("connected")

    with pytest.raises(SpeechToSpeechError, match=r"refused the connection \(HTTP 404\)$"):
        asyncio.run(talk())


def test_what_is_sent_after_the_end_is_lost_and_the_end_is_in_words() -> None:
    async def hang_up(server: ScriptedServer) -> None:
        await server.hang_up()

    async def talk() -> str:
        async with serving(hang_up) as server, connect(server.url) as client:
            async for _ in client.events():
                pass
            await client.send({"type": "response.create"})
            return client.closing

    assert asyncio.run(talk()) == "the server closed the connection (code 1011)"

"""A connection to a Realtime server: events out, events in."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import orjson

from speech_to_speech.errors import ConfigurationError, SpeechToSpeechError

Event: TypeAlias = dict[str, Any]
Observer: TypeAlias = Callable[[str, Event], None]
"""Is told of every event: its direction ("out" to the server, "in" from it) and the event."""

KEY_VARIABLE = "S2S_API_KEY"
PATH = "/v1/realtime"
CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 2.0
"""How long the server may take to answer the end of the connection."""

_SCHEMES = {"ws": "ws", "http": "ws", "wss": "wss", "https": "wss"}


def realtime_url(url: str) -> str:
    """The WebSocket address meant by `url`: ws, wss, http, https or no scheme, with or without the path.

    Raises `ConfigurationError`.
    """
    expected = f"--url {url}: expected an address such as ws://127.0.0.1:8765"
    try:
        parts = urlsplit(url if "://" in url else f"ws://{url}")
        _ = parts.port  # raises ValueError for what is no port
    except ValueError as error:
        raise ConfigurationError(expected) from error
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ConfigurationError(expected)
    path = parts.path.rstrip("/")
    if path in ("", "/v1"):
        path = PATH
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, parts.query, ""))


class RealtimeClient:
    """One conversation with a server. Made by `connect`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, observer: Observer) -> None:
        self._socket = socket
        self._observer = observer

    async def send(self, event: Event) -> None:
        """Send one event. It is lost if the connection has ended; that is told by the end of `events`."""
        self._observer("out", event)
        with suppress(ConnectionError):
            await self._socket.send_str(orjson.dumps(event).decode())

    async def send_audio(self, pcm: bytes) -> None:
        """Send what the microphone heard."""
        await self.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()})

    async def events(self) -> AsyncIterator[Event]:
        """What the server sends, until the connection ends."""
        async for message in self._socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                event = _decoded(message.data)
                self._observer("in", event)
                yield event

    @property
    def closing(self) -> str:
        """Why the connection ended, in words; for an ended one."""
        code = self._socket.close_code
        return f"the server closed the connection (code {code})" if code else "the connection was lost"


@asynccontextmanager
async def connect(
    url: str, observer: Observer = lambda _direction, _event: None, key: str = ""
) -> AsyncIterator[RealtimeClient]:
    """Connect to `url` with `key`, or with the one in the environment variable `S2S_API_KEY`.

    Raises `SpeechToSpeechError` of one line when the server cannot be reached or refuses.
    """
    address = realtime_url(url)
    key = key or os.environ.get(KEY_VARIABLE, "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    closing = aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS)
    async with aiohttp.ClientSession(headers=headers) as session:
        opening = session.ws_connect(address, max_msg_size=0, compress=0, timeout=closing)
        try:
            socket = await asyncio.wait_for(opening, CONNECT_SECONDS)
        except aiohttp.WSServerHandshakeError as error:
            raise SpeechToSpeechError(_refusal(address, error.status, key)) from error
        except asyncio.TimeoutError as error:
            raise SpeechToSpeechError(f"{address} does not answer within {CONNECT_SECONDS:.0f} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise SpeechToSpeechError(f"cannot connect to {address}: {_reason(error)}") from error
        async with socket:
            yield RealtimeClient(socket, observer)


def _refusal(address: str, status: int, key: str) -> str:
    if status == 401:
        asks = "refuses this API key" if key else "asks for an API key"
        remedy = f"give the server's with --api_key_file FILE or the environment variable {KEY_VARIABLE}"
        return f"{address} {asks}: {remedy}"
    return f"{address} refused the connection (HTTP {status})"


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0  # asyncio replaces the system's words for it by its own
        return os.strerror(number) if number > 0 else error.os_error.strerror or str(error.os_error)
    return str(error) or type(error).__name__


def _decoded(frame: str) -> Event:
    try:
        event = orjson.loads(frame)
    except orjson.JSONDecodeError:
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise SpeechToSpeechError("what answers there is no Realtime server: it sent something that is no event")
    return event

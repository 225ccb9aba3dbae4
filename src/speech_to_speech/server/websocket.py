"""The Realtime WebSocket: one connection, one session."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress

import orjson
from aiohttp import WSCloseCode, WSMsgType, web

from speech_to_speech.errors import InvalidRequestError
from speech_to_speech.realtime.server_events import ServerEvent, error_event
from speech_to_speech.session.driver import SessionDriver

logger = logging.getLogger(__name__)

MAXIMUM_MESSAGE_BYTES = 32 * 1024 * 1024
"""Longest message accepted on the wire; a longer one closes the connection with 1009."""

MAXIMUM_UNSENT_BYTES = 32 * 1024 * 1024
"""A client that leaves more than this unread is disconnected."""

HARD_LIMIT_BYTES = 2 * MAXIMUM_MESSAGE_BYTES
"""What is read of a too long message before the connection is cut. A client cut off while it still sends sees a reset
connection; one whose message was read to its end sees the close code."""

CLOSE_SECONDS = 5.0
"""How long a client may take to read the end of its connection."""

MESSAGES_PER_TURN = 8
"""What is read of one client before the others get their turn: a client that fell behind has many waiting."""

REFUSED = 4000
"""Close code of a connection refused after the upgrade, as the hosted API has it."""


def new_websocket() -> web.WebSocketResponse:
    """A socket with this server's limits. Compression is declined: it costs more than it saves on speech."""
    return web.WebSocketResponse(protocols=("realtime",), max_msg_size=HARD_LIMIT_BYTES, compress=False, heartbeat=30.0)


async def refuse(request: web.Request, code: str, message: str) -> web.WebSocketResponse:
    """Complete the upgrade only to say why there will be no session."""
    socket = new_websocket()
    await socket.prepare(request)
    event = error_event(message, error_type="invalid_request_error", code=code)
    await socket.send_str(orjson.dumps(event | {"event_id": "event_refused"}).decode())
    await socket.close(code=REFUSED, message=f"invalid_request_error.{code}".encode())
    return socket


def encode(event: ServerEvent) -> bytes:
    """The event as a text frame. What a client sent comes back in it: orjson refuses some JSON that is valid."""
    try:
        return orjson.dumps(event)
    except TypeError:
        return json.dumps(event).encode()


class Connection:
    """Carries frames between one socket and one session."""

    def __init__(
        self, socket: web.WebSocketResponse, open_session: Callable[[Callable[[ServerEvent], None]], SessionDriver]
    ) -> None:
        self._socket = socket
        self._unsent: asyncio.Queue[bytes] = asyncio.Queue()
        self._unsent_bytes = 0
        self._closing: asyncio.Task[None] | None = None
        self._driver = open_session(self._send)

    async def run(self) -> None:
        """Serve the connection until either side ends it; the session ends with it."""
        writer = asyncio.create_task(self._write())
        try:
            await self._read()
        finally:
            self._driver.close()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _read(self) -> None:
        received = 0
        async for message in self._socket:
            received += 1
            if received % MESSAGES_PER_TURN == 0:
                await asyncio.sleep(0)
            if message.type is WSMsgType.TEXT and len(message.data) <= MAXIMUM_MESSAGE_BYTES:
                await self._driver.receive(message.data)
            elif message.type in (WSMsgType.TEXT, WSMsgType.BINARY) and len(message.data) > MAXIMUM_MESSAGE_BYTES:
                await self._socket.close(code=WSCloseCode.MESSAGE_TOO_BIG, message=b"message over 32 MiB")
            elif message.type is WSMsgType.BINARY:
                self._driver.refuse(
                    InvalidRequestError("Binary frames are not supported; send JSON text frames.", code="invalid_json")
                )
            elif message.type is WSMsgType.ERROR:
                logger.info("connection lost: %s", self._socket.exception())

    def _send(self, event: ServerEvent) -> None:
        frame = encode(event)
        self._unsent_bytes += len(frame)
        self._unsent.put_nowait(frame)
        if self._unsent_bytes > MAXIMUM_UNSENT_BYTES:
            logger.warning("a client left %d MiB unread; disconnecting it", self._unsent_bytes >> 20)
            self._unsent = asyncio.Queue()
            self._unsent_bytes = 0
            self._closing = asyncio.create_task(self._cut_off())

    async def _cut_off(self) -> None:
        """End the connection even if the client does not read the end of it."""
        closing = self._socket.close(code=WSCloseCode.TRY_AGAIN_LATER)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(closing, CLOSE_SECONDS)

    async def _write(self) -> None:
        while True:
            frame = await self._unsent.get()
            try:
                await self._socket.send_frame(frame, WSMsgType.TEXT)
            except (ConnectionError, RuntimeError):
                return
            self._unsent_bytes -= len(frame)

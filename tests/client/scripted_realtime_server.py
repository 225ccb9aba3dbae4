"""A Realtime server that does what a test's script says, on a real WebSocket."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from aiohttp import WSMsgType, web

Event: TypeAlias = dict[str, Any]
Script: TypeAlias = "Callable[[ScriptedServer], Awaitable[None]]"

SETTLED_LOOPS = 6
"""Turns of the event loop without traffic after which nothing more is on its way."""


class ScriptedServer:
    """One connection; counts what comes and goes, so that a test's clock can wait for both sides to be done."""

    def __init__(self, script: Script, *, require_key: str = "") -> None:
        self._script = script
        self._require_key = require_key
        self._socket = web.WebSocketResponse(max_msg_size=0)
        self._news = asyncio.Condition()
        self.received: list[Event] = []
        self.heard_ms = 0.0
        self.sent = 0
        self.url = ""

    # --- for scripts ------------------------------------------------------------------------------------------

    async def heard(self, ms: float) -> None:
        """Wait until the client has sent this much audio since the start."""
        async with self._news:
            await self._news.wait_for(lambda: self.heard_ms >= ms)

    async def got(self, kind: str) -> Event:
        """Wait for an event of this type."""
        async with self._news:
            await self._news.wait_for(lambda: any(event["type"] == kind for event in self.received))
        return self.events(kind)[0]

    async def send(self, *events: Event) -> None:
        """Send events to the client."""
        for event in events:
            self.sent += 1
            await self._socket.send_json(event)

    async def hang_up(self, code: int = 1011) -> None:
        """End the connection from this side."""
        await self._socket.close(code=code)

    # --- for tests --------------------------------------------------------------------------------------------

    def events(self, kind: str) -> list[Event]:
        """What came of this type."""
        return [event for event in self.received if event["type"] == kind]

    # --- inside -----------------------------------------------------------------------------------------------

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self._require_key and request.headers.get("Authorization") != f"Bearer {self._require_key}":
            return web.json_response({"error": "no"}, status=401)
        await self._socket.prepare(request)
        await self.send({"type": "session.created", "session": {"type": "realtime"}})
        script = asyncio.ensure_future(self._script(self))
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                await self._receive(message.json())
        script.cancel()
        await asyncio.gather(script, return_exceptions=True)
        return self._socket

    async def _receive(self, event: Event) -> None:
        async with self._news:
            self.received.append(event)
            if event["type"] == "input_audio_buffer.append":
                self.heard_ms += len(base64.b64decode(event["audio"])) / 48
            self._news.notify_all()


@asynccontextmanager
async def serving(script: Script, *, require_key: str = "") -> AsyncIterator[ScriptedServer]:
    """Listen on a free port for as long as the context lasts."""
    server = ScriptedServer(script, require_key=require_key)
    app = web.Application()
    app.router.add_get("/v1/realtime", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"ws://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


class VirtualTime:
    """Time that passes only when both sides of the connection have nothing left to do."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._now = 0.0
        self.client_sent = 0
        self.client_received = 0

    def observe(self, direction: str, _event: Event) -> None:
        """The client's observer."""
        if direction == "out":
            self.client_sent += 1
        else:
            self.client_received += 1

    def clock(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        quiet_loops = 0
        before = self._traffic()
        while quiet_loops < SETTLED_LOOPS:
            await asyncio.sleep(0)
            now = self._traffic()
            delivered = now[0] == now[1] and now[2] == now[3]
            quiet_loops = quiet_loops + 1 if delivered and now == before else 0
            before = now
            if self._server._socket.closed:
                break
        self._now += seconds

    def _traffic(self) -> tuple[int, int, int, int]:
        return self.client_sent, len(self._server.received), self._server.sent, self.client_received


# --- events ---------------------------------------------------------------------------------------------------


def speech_started(item: str) -> Event:
    return {"type": "input_audio_buffer.speech_started", "item_id": item, "audio_start_ms": 0}


def turn_ended(item: str, transcript: str) -> list[Event]:
    """The user's turn is over and transcribed."""
    return [
        {"type": "input_audio_buffer.speech_stopped", "item_id": item, "audio_end_ms": 0},
        {"type": "input_audio_buffer.committed", "item_id": item, "previous_item_id": None},
        {
            "type": "conversation.item.input_audio_transcription.completed",
            "item_id": item,
            "content_index": 0,
            "transcript": transcript,
        },
    ]


def response_created(response: str) -> Event:
    return {"type": "response.created", "response": {"id": response, "status": "in_progress"}}


def words(response: str, item: str, delta: str) -> Event:
    place = {"response_id": response, "item_id": item, "output_index": 0, "content_index": 0}
    return {"type": "response.output_audio_transcript.delta", **place, "delta": delta}


def audio(response: str, item: str, ms: int) -> Event:
    place = {"response_id": response, "item_id": item, "output_index": 0, "content_index": 0}
    pcm = b"\x00\x10" * (24 * ms)
    return {"type": "response.output_audio.delta", **place, "delta": base64.b64encode(pcm).decode()}


def response_done(response: str, status: str = "completed", **more: Any) -> Event:
    return {"type": "response.done", "response": {"id": response, "status": status, **more}}


def failed_response(response: str, message: str) -> list[Event]:
    error = {"type": "server_error", "code": "server_error", "message": message}
    return [
        {"type": "error", "error": error},
        response_done(response, "failed", status_details={"type": "failed", "error": error}),
    ]

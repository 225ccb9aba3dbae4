"""The HTTP application: routes, session limit, health, and a clean end."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable

from aiohttp import WSCloseCode, web
from aiohttp.typedefs import Handler, Middleware

from speech_to_speech import __version__
from speech_to_speech.arguments_classes import ServerArguments
from speech_to_speech.conversation.reply import Pacing
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.realtime.session_config import ServerVoices
from speech_to_speech.runtime.inline import InlineRuntime
from speech_to_speech.server.access import Access, access_rules
from speech_to_speech.server.loop_monitor import LoopMonitor
from speech_to_speech.server.websocket import Connection, new_websocket, refuse
from speech_to_speech.session.driver import SessionDriver

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 3.0
"""How long open connections may take to close when the server is asked to end."""


class Server:
    """Serves the Realtime API on one address.

    `model` is the name `session.created` reports; `pacing` replaces what the arguments say of it.
    """

    def __init__(
        self, runtime: InlineRuntime, arguments: ServerArguments, *, model: str, pacing: Pacing | None = None
    ) -> None:
        self._runtime = runtime
        self._arguments = arguments
        self._access = access_rules(arguments)
        self._model = model
        self._pacing = pacing or Pacing(float(arguments.audio_lead_ms), arguments.speculate)
        self._voices = ServerVoices(runtime.stages.tts.capabilities.voices)
        self._sockets: set[web.WebSocketResponse] = set()
        self._started = time.monotonic()
        self._runner: web.AppRunner | None = None
        self._monitor = LoopMonitor()
        self.port = arguments.port

    @property
    def sessions(self) -> int:
        """Conversations going on."""
        return len(self._sockets)

    async def start(self) -> None:
        """Listen. Raises `ConfigurationError` if the address cannot be had."""
        app = web.Application(middlewares=[_guard(self._access)])
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/v1/realtime", self._realtime),
                web.get("/v1/models", self._models),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN_SECONDS)
        await self._runner.setup()
        host, port = self._arguments.host, self._arguments.port
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ConfigurationError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        self.port = self._runner.addresses[0][1]
        self._monitor.start()

    async def stop(self) -> None:
        """Close every connection and stop listening; within `SHUTDOWN_SECONDS` for clients that answer."""
        self._monitor.stop()
        closing = [
            socket.close(code=WSCloseCode.GOING_AWAY, message=b"server is shutting down") for socket in self._sockets
        ]
        if closing:
            await asyncio.wait([asyncio.ensure_future(close) for close in closing], timeout=SHUTDOWN_SECONDS)
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {
                "status": "ok",
                "version": __version__,
                "sessions": self.sessions,
                "max_sessions": self._arguments.max_sessions,
                "uptime_seconds": round(time.monotonic() - self._started, 1),
                "loop_blocked_ms_max": round(self._monitor.longest_block_ms, 1),
            }
        )

    async def _models(self, _request: web.Request) -> web.Response:
        model = {"id": self._model, "object": "model", "created": 0, "owned_by": "speech-to-speech-server"}
        return web.json_response({"object": "list", "data": [model]})

    async def _realtime(self, request: web.Request) -> web.StreamResponse:
        if self.sessions >= self._arguments.max_sessions:
            limit = self._arguments.max_sessions
            return await refuse(
                request,
                "session_limit_exceeded",
                f"This server is full (--max_sessions {limit}); try later.",
            )
        socket = new_websocket()
        self._sockets.add(socket)
        try:
            await socket.prepare(request)
            await Connection(socket, self._open_session).run()
        finally:
            self._sockets.discard(socket)
        return socket

    def _open_session(self, send: Callable[[dict[str, object]], None]) -> SessionDriver:
        return SessionDriver(
            self._runtime,
            send,
            model=self._model,
            voices=self._voices,
            pacing=self._pacing,
        )


def _guard(access: Access) -> Middleware:
    """Refuses whoever may not connect, before any route is looked at."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        protocols = [name.strip() for name in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        refusal = access.refusal(request.headers, protocols)
        if refusal is None:
            return await handler(request)
        status, reason = refusal
        code = "invalid_api_key" if status == 401 else "forbidden"
        body = {"error": {"type": "invalid_request_error", "code": code, "message": reason, "param": None}}
        return web.json_response(body, status=status)

    return guard


async def serve_until_signalled(server: Server, ready: Callable[[Server], None]) -> None:
    """Run the server until SIGINT or SIGTERM."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(name, ended.set)
        except NotImplementedError:  # Windows
            signal.signal(name, lambda *_: loop.call_soon_threadsafe(ended.set))
    await server.start()
    ready(server)
    await ended.wait()
    await server.stop()

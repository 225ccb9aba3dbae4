"""`speech-to-speech serve`: load the models, listen, say that it is ready."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Coroutine
from typing import Any

from speech_to_speech.arguments_classes import Configuration, ServerArguments
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.runtime.backends import load_stages
from speech_to_speech.runtime.inline import InlineRuntime
from speech_to_speech.server.access import access_rules
from speech_to_speech.server.app import Server, serve_until_signalled


def serve(configuration: Configuration) -> int:
    """Serve until SIGINT or SIGTERM; returns 0. Raises a `SpeechToSpeechError` before saying ready, or never."""
    logging.basicConfig(
        level=configuration.server.log_level.upper(), format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    access_rules(configuration.server)
    _address_is_free(configuration.server)
    started = time.monotonic()
    print("loading models ...", file=sys.stderr, flush=True)
    runtime = InlineRuntime(load_stages(configuration))
    try:
        server = Server(runtime, configuration.server, model=configuration.llm.model)

        def ready(server: Server) -> None:
            base = f"{configuration.server.host}:{server.port}"
            print(
                f"ready after {time.monotonic() - started:.1f} s: http://{base} "
                f"(OpenAI base URL http://{base}/v1, WebSocket ws://{base}/v1/realtime)",
                flush=True,
            )

        run_event_loop(serve_until_signalled(server, ready))
    finally:
        runtime.close()
    return 0


def run_event_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where it exists."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def _address_is_free(arguments: ServerArguments) -> None:
    """Find a taken port before seconds are spent on loading models."""
    if arguments.port == 0:
        return
    try:
        family = socket.getaddrinfo(arguments.host, arguments.port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((arguments.host, arguments.port))
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {arguments.host}:{arguments.port}: {error.strerror or error}; choose another --port"
        ) from error

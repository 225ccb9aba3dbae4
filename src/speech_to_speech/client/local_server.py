"""A server of our own, in this process, for as long as a conversation lasts."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from speech_to_speech.arguments_classes import Configuration


@asynccontextmanager
async def local_server(configuration: Configuration, notice: Callable[[str], None]) -> AsyncIterator[str]:
    """Load the models, listen on a free port of the loopback address; gives the WebSocket address.

    `notice` takes lines for the user who waits. Raises a `SpeechToSpeechError` when something cannot be loaded.
    """
    notice("loading models ...")
    started = time.monotonic()
    from speech_to_speech.runtime.backends import load_stages
    from speech_to_speech.runtime.inline import InlineRuntime
    from speech_to_speech.server.app import Server

    runtime = InlineRuntime(await asyncio.to_thread(load_stages, configuration))
    try:
        arguments = dataclasses.replace(configuration.server, host="127.0.0.1", port=0, api_key_file="")
        server = Server(runtime, arguments, model=configuration.llm.model)
        await server.start()
        notice(f"models ready after {time.monotonic() - started:.1f} s")
        try:
            yield f"ws://127.0.0.1:{server.port}/v1/realtime"
        finally:
            await server.stop()
    finally:
        await asyncio.to_thread(runtime.close)

"""A server of our own, in this process, for as long as a conversation lasts."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from speech_to_speech.arguments_classes import Configuration

Loaded = TypeVar("Loaded")


NOTICE_EVERY_S = 10.0
"""How often a user who waits for the models is told that they are still loading."""


@asynccontextmanager
async def local_server(configuration: Configuration, notice: Callable[[str], None]) -> AsyncIterator[str]:
    """Load the models, listen on a free port of the loopback address; gives the WebSocket address.

    `notice` takes lines for the user who waits. Raises a `SpeechToSpeechError` when something cannot be loaded.
    """
    from speech_to_speech.runtime.backends import load_stages
    from speech_to_speech.runtime.inline import InlineRuntime
    from speech_to_speech.server.app import Server

    runtime = InlineRuntime(await _in_thread(lambda: load_stages(configuration), notice))
    try:
        arguments = dataclasses.replace(configuration.server, host="127.0.0.1", port=0, api_key_file="")
        server = Server(runtime, arguments, model=configuration.llm.model)
        await server.start()
        try:
            yield f"ws://127.0.0.1:{server.port}/v1/realtime"
        finally:
            await server.stop()
    finally:
        await asyncio.to_thread(runtime.close)


async def _in_thread(load: Callable[[], Loaded], notice: Callable[[str], None]) -> Loaded:
    started = time.monotonic()
    notice("loading models ...")
    loading = asyncio.ensure_future(asyncio.to_thread(load))
    while not (await asyncio.wait([loading], timeout=NOTICE_EVERY_S))[0]:
        notice(f"loading models ... {time.monotonic() - started:.0f} s")
    loaded = loading.result()
    notice(f"models loaded in {time.monotonic() - started:.1f} s")
    return loaded

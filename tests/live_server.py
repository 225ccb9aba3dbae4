"""A real server in a process of its own, and a real-time client that records what it is told."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import numpy as np
from numpy.typing import NDArray

from server_event_oracle import check_order, check_server_event

RATE = 24_000
BLOCK = RATE // 50


@dataclass
class LiveServer:
    """A running `speech-to-speech serve`."""

    process: subprocess.Popen[str]
    port: int
    log: list[str] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def health(self) -> dict[str, Any]:
        import urllib.request

        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=10) as response:
            health: dict[str, Any] = json.load(response)
        return health


@contextmanager
def serving(*flags: str) -> Iterator[LiveServer]:
    """Start a server on a free port and wait until it is ready."""
    command = [sys.executable, "-m", "speech_to_speech.cli", "serve", "--port", "0", *flags]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    server = LiveServer(process, 0)
    assert process.stdout is not None
    for line in process.stdout:
        server.log.append(line)
        if found := re.match(r"ready after .* http://127\.0\.0\.1:(\d+) ", line):
            server.port = int(found.group(1))
            break
    assert server.port, "the server did not get ready: " + "".join(server.log)
    reader = threading.Thread(target=lambda: server.log.extend(process.stdout or ()), daemon=True)
    reader.start()
    try:
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)


class LiveClient:
    """One connection whose microphone streams in real time; every event is validated as it comes."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.events: list[dict[str, Any]] = []
        self._socket = socket
        self._speech: list[NDArray[np.float32]] = []
        self._changed = asyncio.Condition()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._stream())]

    def speak(self, samples: NDArray[np.float32]) -> None:
        """Say this next, as soon as what was to be said before is over."""
        self._speech.append(samples)

    async def send(self, event: dict[str, Any]) -> None:
        await self._socket.send_json(event)

    async def until(self, found: Callable[[list[dict[str, Any]]], bool], seconds: float = 60) -> None:
        """Wait until the events so far satisfy `found`."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: found(self.events)), seconds)

    async def until_count(self, kind: str, count: int = 1, seconds: float = 60) -> dict[str, Any]:
        """Wait for the `count`-th event of a kind, and return it."""
        await self.until(lambda _: len(self.of_type(kind)) >= count, seconds)
        return self.of_type(kind)[count - 1]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def transcripts(self) -> list[str]:
        kind = "conversation.item.input_audio_transcription.completed"
        return [event["transcript"] for event in self.of_type(kind)]

    def answers(self) -> list[str]:
        return [event["transcript"] for event in self.of_type("response.output_audio_transcript.done")]

    def audio(self) -> NDArray[np.float32]:
        """All audio the server sent, at 24 kHz."""
        pcm = b"".join(base64.b64decode(event["delta"]) for event in self.of_type("response.output_audio.delta"))
        return np.frombuffer(pcm, "<i2").astype(np.float32) / 32768

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        check_order(self.events)

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                event = json.loads(message.data)
                check_server_event(event)
                async with self._changed:
                    self.events.append(event)
                    self._changed.notify_all()

    async def _stream(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        silence = np.zeros(BLOCK, np.float32)
        current = np.zeros(0, np.float32)
        while True:
            if len(current) < BLOCK and self._speech:
                current = np.concatenate([current, self._speech.pop(0)])
            block = current[:BLOCK] if len(current) else silence
            current = current[BLOCK:]
            pcm = (np.clip(block, -1, 1) * 32767).astype("<i2").tobytes()
            await self.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()})
            due += len(block) / RATE
            await asyncio.sleep(max(0.0, due - loop.time()))


async def talk(
    server: LiveServer, conversation: Callable[[LiveClient], Any], *, session: dict[str, Any] | None = None
) -> LiveClient:
    """Connect, ask for transcripts, run `conversation`, and leave."""
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{server.base_url}/realtime", max_msg_size=0) as socket,
    ):
        client = LiveClient(socket)
        settings = {"type": "realtime", "audio": {"input": {"transcription": {"model": "default"}}}} | (session or {})
        await client.send({"type": "session.update", "session": settings})
        try:
            await conversation(client)
        finally:
            await client.close()
        return client

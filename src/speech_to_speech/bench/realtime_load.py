"""The load of `bench overhead`, in a process of its own: many clients that talk and listen in real time.

Run as `python -m speech_to_speech.bench.realtime_load PORT`. Takes one JSON command per line on stdin and answers each
with one JSON line on stdout:

- `{"do": "connect", "sessions": N}` answers when every session has had its `session.created`;
- `{"do": "talk"}` starts frames and answers in all sessions;
- `{"do": "count"}` answers with a `LoadCount` of everything so far.

It ends with stdin. It speaks WebSocket by hand: every frame it sends is made once, so that it can load a server that
shares the machine with it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import cast

import numpy as np
import orjson

from speech_to_speech.server.command import run_event_loop

FRAME_S = 0.02
FRAME_SAMPLES = 480
"""20 ms at 24 kHz."""

PCM_BYTES_PER_S = 48_000

START_OVER_S = 3.0
"""The first answers of all sessions are asked for within this time, so that not all begin at once."""

PROBE_EVERY = 50
"""Each session's every 50th frame (1 s) is followed by a question that the server answers at once, in order: the time
to its answer bounds the time until the frame was handled."""

TICK_S = 0.001

CONNECT_TIMEOUT_S = 30.0

_KEY = bytes((0x37, 0xFA, 0x21, 0x3D))
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


@dataclass(slots=True)
class LoadCount:
    """What was sent and received since the start.

    `frames`: input frames of 20 ms; `sent_late`: those that left over 20 ms after they were due (this process was too
    slow); `audio_s`: spoken answers received, `dry_deltas`: deltas that came after all audio before them had played;
    `probes` sent, `answer_ms`: how long each answered one took; `cpu_s`: CPU time of this process.
    """

    frames: int = 0
    probes: int = 0
    sent_late: int = 0
    audio_s: float = 0.0
    deltas: int = 0
    dry_deltas: int = 0
    lost: int = 0
    cpu_s: float = 0.0
    answer_ms: list[float] = field(default_factory=list)


def client_frame(opcode: int, payload: bytes) -> bytes:
    """One masked WebSocket frame (RFC 6455, 5.2) of less than 64 KiB."""
    length = len(payload)
    size = bytes((0x80 | length,)) if length < 126 else b"\xfe" + length.to_bytes(2, "big")
    key = np.frombuffer((_KEY * (length // 4 + 1))[:length], np.uint8)
    return bytes((0x80 | opcode,)) + size + _KEY + (np.frombuffer(payload, np.uint8) ^ key).tobytes()


def _event(event: dict[str, object]) -> bytes:
    return client_frame(_TEXT, orjson.dumps(event))


_NOISE = np.random.default_rng(0).integers(-300, 300, FRAME_SAMPLES).astype("<i2").tobytes()
_APPEND = _event({"type": "input_audio_buffer.append", "audio": base64.b64encode(_NOISE).decode()})
_CREATE = _event({"type": "response.create"})
_PROBE = _event({"type": "conversation.item.retrieve", "item_id": "probe"})


class LoadSession(asyncio.Protocol):
    """One connection."""

    def __init__(self, port: int, count: LoadCount, number: int) -> None:
        self._count = count
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._upgraded = False
        self._talking = False
        self._answering = False
        self._plays_until = 0.0
        self._probes: deque[float] = deque()
        self._frames = number  # sessions take turns with their probes
        self._transport: asyncio.Transport
        self.created = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(
            f"GET /v1/realtime?model=none HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            "\r\n".encode()
        )

    def connection_lost(self, error: Exception | None) -> None:
        self._count.lost += 1
        if not self.created.done():
            self.created.set_exception(ConnectionError("the server closed a connection before session.created"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._upgraded:
            head, separator, rest = self._received.partition(b"\r\n\r\n")
            if not separator:
                return
            if b" 101 " not in head.split(b"\r\n")[0]:
                self.created.set_exception(ConnectionError(head.decode(errors="replace")))
                self._transport.close()
                return
            self._upgraded, self._received = True, rest
        while (frame := self._next_frame()) is not None:
            self._receive(*frame)

    def talk(self) -> None:
        """Ask for an answer, and for the next one whenever one has been played."""
        self._talking = True
        self._transport.write(_CREATE)

    def send_frame(self) -> None:
        """The next 20 ms of the microphone."""
        self._transport.write(_APPEND)
        self._frames += 1
        if self._frames % PROBE_EVERY == 0:
            self._count.probes += 1
            self._probes.append(time.perf_counter())
            self._transport.write(_PROBE)

    def _next_frame(self) -> tuple[int, bytes] | None:
        """Take one whole frame from what was received; the server's frames carry no mask."""
        received = self._received
        if len(received) < 2:
            return None
        length, start = received[1] & 0x7F, 2
        if length >= 126:
            start = 4 if length == 126 else 10
            length = int.from_bytes(received[2:start], "big")
        if len(received) < start + length:
            return None
        frame = received[0] & 0x0F, bytes(received[start : start + length])
        del received[: start + length]
        return frame

    def _receive(self, opcode: int, payload: bytes) -> None:
        if opcode == _TEXT:
            self._receive_event(orjson.loads(payload))
        elif opcode == _PING:
            self._transport.write(client_frame(_PONG, payload))
        elif opcode == _CLOSE:
            self._transport.close()

    def _receive_event(self, event: dict[str, str]) -> None:
        kind = event["type"]
        if kind == "response.output_audio.delta":
            self._hear(event["delta"])
        elif kind == "error" and self._probes:
            self._count.answer_ms.append((time.perf_counter() - self._probes.popleft()) * 1000)
        elif kind == "session.created":
            self.created.set_result(None)
        elif kind == "response.done":
            self._answering = False
            if self._talking:
                self._loop.call_later(max(0.0, self._plays_until - time.perf_counter()), self.talk)

    def _hear(self, delta: str) -> None:
        now = time.perf_counter()
        seconds = (len(delta) * 3 // 4 - delta.count("=", -2)) / PCM_BYTES_PER_S
        self._count.deltas += 1
        self._count.dry_deltas += self._answering and now > self._plays_until
        self._count.audio_s += seconds
        self._answering = True
        self._plays_until = max(self._plays_until, now) + seconds


class Load:
    """All sessions of this process."""

    def __init__(self, port: int) -> None:
        self.count = LoadCount()
        self._port = port
        self._sessions: list[LoadSession] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self, sessions: int) -> None:
        """Open the sessions, a few at a time: a server's queue of new connections is short."""
        several = asyncio.Semaphore(32)

        async def connect_one(number: int) -> LoadSession:
            async with several:
                loop = asyncio.get_running_loop()
                _, session = await loop.create_connection(
                    lambda: LoadSession(self._port, self.count, number), "127.0.0.1", self._port
                )
                await asyncio.wait_for(session.created, CONNECT_TIMEOUT_S)
                return session

        self._sessions = await asyncio.gather(*(connect_one(number) for number in range(sessions)))

    def talk(self) -> None:
        """Start frames and answers."""
        self._tasks = [asyncio.create_task(self._send_frames()), asyncio.create_task(self._ask_for_answers())]

    async def _ask_for_answers(self) -> None:
        for session in self._sessions:
            session.talk()
            await asyncio.sleep(START_OVER_S / len(self._sessions))

    async def _send_frames(self) -> None:
        """Frame k of session i of n is due (k + i/n) frames after the start."""
        began, sent = time.perf_counter(), 0
        per_second = len(self._sessions) / FRAME_S
        while True:
            now = time.perf_counter()
            while sent <= (now - began) * per_second:
                self._sessions[sent % len(self._sessions)].send_frame()
                self.count.sent_late += now - began - sent / per_second > FRAME_S
                sent += 1
                self.count.frames = sent
            await asyncio.sleep(TICK_S)


async def _serve_commands(port: int) -> None:
    load = Load(port)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        answer: dict[str, object] = {}
        if command["do"] == "connect":
            try:
                await load.connect(command["sessions"])
            except (OSError, asyncio.TimeoutError) as error:
                answer = {"error": f"a session could not be opened: {error or 'no answer'}"}
        elif command["do"] == "talk":
            load.talk()
        else:
            load.count.cpu_s = time.process_time()
            answer = asdict(load.count)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    run_event_loop(_serve_commands(int(sys.argv[1])))

"""The process that loads the server, as the benchmark commands it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from speech_to_speech.bench.realtime_load import LoadCount
from speech_to_speech.errors import SpeechToSpeechError

_ANSWER_BYTES = 64 * 1024 * 1024
"""Longest answer of the process: its counts hold one number per probe."""


class LoadProcess:
    """Commands one `bench.realtime_load`. Raises `SpeechToSpeechError` when it fails."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def connect(self, sessions: int) -> None:
        """Open `sessions` sessions."""
        await self._do("connect", sessions=sessions)

    async def talk(self) -> None:
        """Let every session send its frames and ask for answers."""
        await self._do("talk")

    async def count(self) -> LoadCount:
        """Everything sent and received so far."""
        return LoadCount(**await self._do("count"))

    async def _do(self, command: str, **arguments: int) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": command, **arguments}).encode() + b"\n")
        line = await self._process.stdout.readline()
        if not line:
            raise SpeechToSpeechError(f"the load process ended at '{command}'")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SpeechToSpeechError(answer["error"])
        return answer


@asynccontextmanager
async def load_process(port: int) -> AsyncIterator[LoadProcess]:
    """A load process for the server on `port`; its sessions end with it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "speech_to_speech.bench.realtime_load", str(port)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_ANSWER_BYTES,
    )
    try:
        yield LoadProcess(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()

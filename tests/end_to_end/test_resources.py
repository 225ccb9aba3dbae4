"""What is left after sessions have come and gone, and how the server ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from live_server import LiveClient, LiveServer, serving, talk

linux_only = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


def _resident_kib(server: LiveServer) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def _threads(server: LiveServer) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


async def _short_session(server: LiveServer) -> None:
    async def conversation(client: LiveClient) -> None:
        await client.send(
            {
                "type": "conversation.item.create",
                "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say hi."}]},
            }
        )
        await client.send({"type": "response.create", "response": {"max_output_tokens": 4}})
        await client.until_count("response.created")

    await talk(server, conversation)


@linux_only
def test_fifty_sessions_leave_nothing_behind(server: LiveServer) -> None:
    async def sessions(count: int) -> None:
        for _ in range(count):
            await _short_session(server)

    async def settled() -> None:
        while server.health()["sessions"]:  # noqa: ASYNC110  # the server tells nobody when a session ends
            await asyncio.sleep(0.05)

    asyncio.run(sessions(10))
    asyncio.run(settled())
    before, threads = _resident_kib(server), _threads(server)
    asyncio.run(sessions(50))
    asyncio.run(settled())

    # Worker threads are made as they are needed and kept; one that leaked with each session would show as 50.
    assert _threads(server) < threads + 25
    # A session holds a few hundred KiB while it lives; 50 that leaked would show as over 10 MiB.
    assert _resident_kib(server) - before < 10 * 1024


@linux_only
def test_the_server_listens_on_its_one_port_only(server: LiveServer) -> None:
    inodes = set()
    for descriptor in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{server.process.pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                listening.append(int(fields[1].rpartition(":")[2], 16))
    assert listening == [server.port]


def test_sigterm_ends_the_server_soon_and_cleanly_even_in_mid_answer() -> None:
    with serving() as server:

        async def interrupted(client: LiveClient) -> None:
            await client.send(
                {
                    "type": "conversation.item.create",
                    "item": {
                        "type": "message",
                        "role": "user",
                        "content": [{"type": "input_text", "text": "Count from one to one hundred."}],
                    },
                }
            )
            await client.send({"type": "response.create"})
            await client.until_count("response.output_audio.delta")
            server.process.terminate()
            await asyncio.to_thread(server.process.wait, timeout=10)

        asyncio.run(talk(server, interrupted))

    assert server.process.returncode == 0
    assert not any("Traceback" in line for line in server.log)


def test_a_taken_port_is_found_before_the_models_load(server: LiveServer) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "speech_to_speech.cli", "serve", "--port", str(server.port)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    [line] = result.stderr.splitlines()
    assert f"127.0.0.1:{server.port}" in line and "in use" in line.lower()

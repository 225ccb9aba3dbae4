"""Streams of server-sent events from an HTTP API, read in worker threads and cancelled from them."""

from __future__ import annotations

import asyncio
import email.utils
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

import aiohttp

from speech_to_speech.errors import Cancelled
from speech_to_speech.stage_types import IsCancelled

_CANCEL_POLL_S = 0.02
_CONNECT_S = 5.0
_RETRIES = 2
_FIRST_DELAY_S = 0.25
_LONGEST_DELAY_S = 2.0
"""A server that asks for a longer pause gets none: somebody waits for the answer."""

_RETRIED = (408, 429, 500, 502, 503, 504)
_LONGEST_MESSAGE = 300

_T = TypeVar("_T")


class HTTPStatusError(Exception):
    """The server refused: `status`, what it said, the JSON `error` object if it sent one, the seconds to wait."""

    def __init__(self, status: int, message: str, error: Mapping[str, Any], retry_after_s: float | None) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status
        self.message = message
        self.error = error
        self.retry_after_s = retry_after_s


class StreamBrokenError(Exception):
    """The server could not be reached, fell silent, or went away before its stream had ended."""


class EventStreams:
    """One connection pool, on an event loop in a thread of its own."""

    def __init__(self, base_url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="llm-http", daemon=True)
        self._thread.start()
        self._client = self._run(self._open())

    def get(self, path: str) -> dict[str, Any]:
        """The JSON object at `path`. Raises `HTTPStatusError`, `StreamBrokenError`."""
        return self._run(self._get(path))

    def post(self, path: str, body: dict[str, Any], is_cancelled: IsCancelled) -> Iterator[dict[str, Any]]:
        """The events of the answer to `body`, each a JSON object, up to `[DONE]` or the stream's end.

        What fails before the first event is tried again, twice, within seconds. Closing the iterator closes the
        connection. Raises `Cancelled` within 20 ms, `HTTPStatusError`, `StreamBrokenError`.
        """
        arrived: queue.SimpleQueue[dict[str, Any] | Exception | None] = queue.SimpleQueue()
        reading = asyncio.run_coroutine_threadsafe(self._read(path, body, arrived.put), self._loop)
        try:
            while True:
                try:
                    item = arrived.get(timeout=_CANCEL_POLL_S)
                except queue.Empty:
                    item = {}
                if is_cancelled():
                    raise Cancelled("cancelled while generating")
                if isinstance(item, Exception):
                    raise item
                if item is None:
                    return
                if item:
                    yield item
        finally:
            reading.cancel()

    def close(self) -> None:
        """Close every connection and end the thread."""
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=2)
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=self._timeout_s)
        return aiohttp.ClientSession(headers=self._headers, timeout=timeout, trust_env=True)

    async def _get(self, path: str) -> dict[str, Any]:
        try:
            async with self._client.get(self._base_url + path) as response:
                await _refuse(response)
                found = await response.json(content_type=None)
        except (aiohttp.ClientError, asyncio.TimeoutError, ValueError) as error:
            raise StreamBrokenError(_describe(error)) from error
        return found if isinstance(found, dict) else {}

    async def _read(
        self, path: str, body: dict[str, Any], put: Callable[[dict[str, Any] | Exception | None], None]
    ) -> None:
        for attempt in range(_RETRIES + 1):
            started = False
            try:
                async with self._client.post(self._base_url + path, json=body) as response:
                    await _refuse(response)
                    async for event in _events(response.content):
                        started = True
                        put(event)
                put(None)
                return
            except HTTPStatusError as error:
                delay = _FIRST_DELAY_S * 2**attempt if error.retry_after_s is None else error.retry_after_s
                if error.status not in _RETRIED or attempt == _RETRIES or delay > _LONGEST_DELAY_S:
                    put(error)
                    return
            except (aiohttp.ClientError, asyncio.TimeoutError, ValueError) as error:
                if started or attempt == _RETRIES or isinstance(error, asyncio.TimeoutError):
                    put(StreamBrokenError(_describe(error)))
                    return
                delay = _FIRST_DELAY_S * 2**attempt
            await asyncio.sleep(delay)


async def _events(content: aiohttp.StreamReader) -> Any:
    """The JSON objects of the `data:` lines (WHATWG server-sent events; nobody splits JSON over several lines)."""
    pending = b""
    async for block in content.iter_any():
        *lines, pending = (pending + block).split(b"\n")
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == b"[DONE]":
                return
            event = json.loads(data)
            if isinstance(event, dict):
                yield event


async def _refuse(response: aiohttp.ClientResponse) -> None:
    """Raise for any status but success."""
    if response.status < 300:
        return
    text = (await response.text(errors="replace")).strip()
    try:
        error = json.loads(text)
        error = error.get("error", error) if isinstance(error, dict) else {"message": text}
        error = error if isinstance(error, dict) else {"message": str(error)}
    except ValueError:
        error = {"message": text}
    message = " ".join(str(error.get("message") or response.reason).split())[:_LONGEST_MESSAGE]
    raise HTTPStatusError(response.status, message, error, _retry_after_s(response.headers))


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """`Retry-After`: seconds, or a date (RFC 9110)."""
    value = headers.get("Retry-After")
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        date = email.utils.parsedate_tz(value)
        return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


def _describe(error: Exception) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "it did not answer in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect: {os.strerror(error.os_error.errno or 0)}"
    return " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_MESSAGE]

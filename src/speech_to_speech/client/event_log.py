"""A record of everything that went over a connection."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson

from speech_to_speech.client.realtime_client import Event, Observer
from speech_to_speech.errors import ConfigurationError


@contextmanager
def event_log(path: str | Path | None) -> Iterator[Observer]:
    """An observer that writes each event to `path` as a line of JSON: `t` (s since now), `direction`, `event`.

    Without a path it writes nothing. Raises `ConfigurationError` naming the file when it cannot be written.
    """
    if path is None:
        yield lambda _direction, _event: None
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open("wb"))
        except OSError as error:
            raise ConfigurationError(f"--events {path}: {error.strerror or error}") from error
        started = time.monotonic()

        def write(direction: str, event: Event) -> None:
            line = {"t": round(time.monotonic() - started, 4), "direction": direction, "event": event}
            file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

        yield write

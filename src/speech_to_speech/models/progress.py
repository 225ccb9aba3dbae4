"""What the user sees on stderr while assets arrive: bars on a terminal, one line per asset otherwise."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_LOOK_SECONDS = 0.1


class Progress:
    """Shows one asset at a time. Use `asset` around its download and the others inside it."""

    def __init__(self) -> None:
        self._name = ""
        self._bars: Bars | None = None
        self._task: TaskID | None = None

    @contextlib.contextmanager
    def asset(self, name: str, size: int) -> Iterator[None]:
        """Covers the download of one asset of `size` bytes, and says at its end what it took."""
        started = time.monotonic()
        self._name = name
        with self._display() as self._bars:
            yield
        seconds = max(time.monotonic() - started, 1e-3)
        say(f"{name}  {megabytes(size)}  {seconds:.1f} s  {megabytes(size / seconds)}/s")

    @contextlib.contextmanager
    def growing(self, folder: Path, total: int) -> Iterator[None]:
        """Covers a download by someone else's code, which is followed by the growth of `folder` up to `total` bytes."""
        if self._bars is None:
            yield
            return
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(folder, total, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def step(self, what: str) -> None:
        """Names what happens besides downloading."""
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, description=f"{self._name} ({what})")

    @contextlib.contextmanager
    def _display(self) -> Iterator[Bars | None]:
        if not sys.stderr.isatty():
            yield None
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as Bars

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
            self._task = bars.add_task(self._name, total=None)
            yield bars
        self._task = None

    def _watch(self, folder: Path, total: int, ended: threading.Event) -> None:
        assert self._bars is not None and self._task is not None
        before = _bytes_below(folder)
        self._bars.reset(self._task, total=total, description=self._name)
        while not ended.wait(_LOOK_SECONDS):
            self._bars.update(self._task, completed=min(_bytes_below(folder) - before, total))
        self._bars.update(self._task, completed=total)


def say(line: str) -> None:
    """One line to the user, beside any bars."""
    print(line, file=sys.stderr, flush=True)


def megabytes(count: float) -> str:
    """Bytes in the unit of the table, 10^6."""
    return f"{count / 1e6:.1f} MB"


def _bytes_below(folder: Path) -> int:
    """Bytes of distinctly named files: pip copies a finished wheel, which must not count twice."""
    sizes: dict[str, int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                sizes[name] = max(sizes.get(name, 0), os.path.getsize(os.path.join(parent, name)))
    return sum(sizes.values())

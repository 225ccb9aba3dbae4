"""The folder model files lie in: `<root>/<kind>/<asset>/<file>`, and whether a file there is the right one.

The root is `$S2S_MODELS_DIR`, else the platform's cache folder. Hashing half a gigabyte at each start would cost more
than loading the model, so a file that passed is remembered by a small `.verified` marker with its size and mtime.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from speech_to_speech.errors import AssetError
from speech_to_speech.models.assets import Asset, AssetFile

ROOT_VARIABLE = "S2S_MODELS_DIR"
_PARTIAL = ".partial-"


def root() -> Path:
    """The cache folder; it need not exist."""
    chosen = os.environ.get(ROOT_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return platformdirs.user_cache_path("speech-to-speech", appauthor=False) / "models"


def folder(asset: Asset) -> Path:
    """Where the asset's files lie or will lie."""
    return root() / asset.kind / asset.name


def location(asset: Asset) -> Path:
    """What a backend opens: the folder of a Whisper model, else the asset's first file."""
    return folder(asset) if asset.kind == "stt" else folder(asset) / asset.files[0].name


def is_present(asset: Asset) -> bool:
    """Whether all files are there, judged by size alone so that a listing is instant."""
    return all(_size(folder(asset) / file.name) == file.size for file in asset.files)


def missing(asset: Asset) -> tuple[AssetFile, ...]:
    """The files still to be fetched. Raises AssetError for a file someone put there that is not the right one."""
    return tuple(file for file in asset.files if not _is_verified(folder(asset) / file.name, file))


def adopt(path: Path, destination: Path, file: AssetFile) -> None:
    """Move a file whose hash was checked to its place in one step, and remember that it was checked."""
    with path.open("r+b") as stream:  # Windows flushes only what is open for writing
        os.fsync(stream.fileno())
    os.replace(path, destination)
    _remember(destination, file)


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def workshop(place: Path) -> Iterator[Path]:
    """A temporary folder beside the final files, gone at the end; those left by a killed run are removed first.

    Call with the `exclusive` lock held: without it another process's live folder would be taken for a stale one.
    """
    for stale in place.glob(_PARTIAL + "*"):
        shutil.rmtree(stale, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=place))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def exclusive(place: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the asset's folder alone among all processes; `on_wait` is called once if another holds it.

    The operating system frees the lock when its holder dies. The lock file stays: removing it would let a third
    process lock a new file while the second still waits on the old one.
    """
    with (place / ".lock").open("a+b") as stream:
        if not _try_lock(stream):
            on_wait()
            _wait_lock(stream)
        yield


if sys.platform == "win32":
    import msvcrt

    def _try_lock(stream: IO[bytes]) -> bool:
        stream.seek(0)
        try:
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _wait_lock(stream: IO[bytes]) -> None:
        import time

        while not _try_lock(stream):
            time.sleep(0.2)

else:
    import fcntl

    def _try_lock(stream: IO[bytes]) -> bool:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait_lock(stream: IO[bytes]) -> None:
        fcntl.flock(stream, fcntl.LOCK_EX)


def _is_verified(path: Path, file: AssetFile) -> bool:
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    marked = _marker(path).read_text().split() if _marker(path).exists() else []
    if marked == [file.sha256, str(status.st_size), str(status.st_mtime_ns)]:
        return True
    if marked and marked[0] != file.sha256:
        return False  # fetched under an older table: ours to replace
    if status.st_size != file.size:
        found = f"is {status.st_size} bytes, expected {file.size}"
    elif (digest := sha256(path)) != file.sha256:
        found = f"has SHA-256 {digest}, expected {file.sha256}"
    else:
        _remember(path, file)
        return True
    raise AssetError(f"{path} {found}; replace it, or delete it to have it downloaded")


def _marker(path: Path) -> Path:
    return path.with_name(f".{path.name}.verified")


def _remember(path: Path, file: AssetFile) -> None:
    status = path.stat()
    with contextlib.suppress(OSError):  # a read-only cache is verified each time instead
        _marker(path).write_text(f"{file.sha256} {status.st_size} {status.st_mtime_ns}\n")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1

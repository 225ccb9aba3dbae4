"""Files from the Hugging Face hub, through `huggingface_hub` so that the user's token, mirror and proxy count."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from speech_to_speech.models.assets import HubSource, SourceError, SourceUnreachable
from speech_to_speech.models.progress import Progress

CONNECT_SECONDS = 3.0
_ANSWER_SECONDS = 2 * CONNECT_SECONDS


def forbidden_by() -> str | None:
    """The variable with which the user forbade the hub, in any of the forms `huggingface_hub` accepts."""
    variables = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    name = next((name for name in variables if os.environ.get(name)), "")
    return name if os.environ.get(name, "").upper() in {"1", "ON", "YES", "TRUE"} else None


def fetch(source: HubSource, size: int, destination: Path, workshop: Path, progress: Progress) -> None:
    """Download one file of the table to `destination`, leaving no copy in the hub's own cache."""
    probe(source.repo, source.path, source.revision)
    hub = _library()
    store = workshop / "hub"
    with progress.growing(store, size), _quiet(hub):
        try:
            fetched = hub.hf_hub_download(
                source.repo,
                source.path,
                revision=source.revision,
                local_dir=store,
                etag_timeout=CONNECT_SECONDS,
            )
        except Exception as error:  # its error classes differ between versions of the library and of its HTTP client
            raise SourceError(line(error)) from error
    os.replace(fetched, destination)


def cached_file(repo: str, path: str) -> Path | None:
    """The file in the hub's own cache on this machine, without any connection."""
    found = _library().try_to_load_from_cache(repo, path)
    return Path(found) if isinstance(found, str) else None


def download_file(repo: str, path: str) -> Path:
    """A file of any repository, kept in the hub's own cache, where other programs find it too."""
    probe(repo, path)
    try:
        return Path(_library().hf_hub_download(repo, path, etag_timeout=CONNECT_SECONDS))
    except Exception as error:
        raise SourceError(line(error)) from error


def probe(repo: str, path: str, revision: str = "main") -> None:
    """Ask for the file's header with a short timeout; raises SourceError unless the hub has it.

    `hf_hub_download` alone retries a hub that cannot be reached for minutes when it finds no copy in its cache.
    """
    if variable := forbidden_by():
        raise SourceUnreachable(f"{variable} is set")
    hub = _library()
    answer: list[Exception | None] = []

    def ask() -> None:
        try:
            hub.get_hf_file_metadata(hub.hf_hub_url(repo, path, revision=revision), timeout=CONNECT_SECONDS)
            answer.append(None)
        except Exception as error:  # its error classes differ between versions of the library and of its HTTP client
            answer.append(error)

    # In a thread: the connect timeout counts per address of the hub, and looking up its name has none at all.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_ANSWER_SECONDS)
    if not answer:
        raise SourceUnreachable(f"no connection to the hub (no answer in {_ANSWER_SECONDS:g} s)")
    error = answer[0]
    if error is None:
        return
    if getattr(error, "response", None) is not None or isinstance(error, ValueError):  # ValueError: a malformed name
        raise SourceError(line(error)) from error
    raise SourceUnreachable(f"no connection to the hub ({line(error)})") from error


def _library() -> Any:
    import huggingface_hub

    return huggingface_hub


@contextlib.contextmanager
def _quiet(hub: Any) -> Iterator[None]:
    """Hides the library's own progress bars; ours watches the folder instead."""
    if hub.utils.are_progress_bars_disabled():
        yield
        return
    hub.utils.disable_progress_bars()
    try:
        yield
    finally:
        hub.utils.enable_progress_bars()


def line(error: Exception) -> str:
    """An error of the library as one line of at most 200 characters."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"

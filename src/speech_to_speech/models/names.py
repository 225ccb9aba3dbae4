"""From what the user wrote after `--stt_model`, `--llm_model` and the like to the file or folder a backend opens."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from speech_to_speech.errors import AssetError
from speech_to_speech.models import assets, hub
from speech_to_speech.models.assets import KINDS, SourceError
from speech_to_speech.models.downloader import Downloader

_PIPER_VOICE = re.compile(r"(?P<language>[a-z]{2,3})_(?P<region>[A-Z]{2,3})-(?P<speaker>\w+)-(?P<quality>\w+)")
_REPO = re.compile(r"[\w.-]+/[\w.-]+")
_REPO_FILE = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)/(?P<path>.+\.(?P<suffix>\w+))")
_GGUF_SHARD = re.compile(r"(?P<stem>.+-)00001-of-(?P<count>\d{5})\.gguf")
_WHISPER_FILES = ["config.json", "preprocessor_config.json", "model.bin", "tokenizer.json", "vocabulary.*"]
_SYSTRAN_WHISPER = (
    *("tiny", "tiny.en", "base", "base.en", "small", "small.en", "medium", "medium.en"),
    *("large-v1", "large-v2", "large-v3"),
)


def resolve(kind: str, name: str) -> Path:
    """The path a backend of `kind` opens for `name`; downloads it when it is not on this machine.

    `name` is an asset of the table, a path, or a name on the hub. A bare name of the table wins over a file of that
    name in the working folder; write `./name` for the latter. What came from the hub once is used without asking the
    hub again. Raises AssetError.
    """
    if kind not in KINDS:
        raise ValueError(f"no such kind of asset: {kind!r}")
    if asset := assets.find(kind, name):
        return Downloader().ensure(asset)
    path = Path(os.path.expanduser(name))
    if name and path.exists():
        return _checked(kind, path)
    if path.is_absolute() or name.startswith((".", "~")):
        raise AssetError(f"{kind}: there is no {path}")
    try:
        found = _FROM_HUB[kind](name) if kind in _FROM_HUB else None
    except SourceError as error:
        raise AssetError(f"{kind} model {name}: {error}; {_FORMS[kind]}{_suggestion(kind, name)}") from error
    if found is None:
        raise AssetError(f"{name!r} is no {kind} model: {_FORMS[kind]}{_suggestion(kind, name)}")
    return found


_FORMS = {
    "vad": "give a known name or the path of an .onnx file",
    "turn": "give a known name or the path of an .onnx file",
    "stt": "give a faster-whisper name, owner/repository on the hub, or the path of a folder with model.bin",
    "llm": "give a known name, owner/repository/file.gguf on the hub, or the path of a .gguf file",
    "tts": "give a Piper voice such as en_GB-alan-low, owner/repository/voice.onnx on the hub, or an .onnx file's path",
}


def _checked(kind: str, path: Path) -> Path:
    if kind == "stt" and not (path / "model.bin").is_file():
        raise AssetError(f"stt: {path} is not a faster-whisper model: a folder with model.bin is wanted")
    if kind == "llm" and not (path.is_file() and path.suffix.lower() == ".gguf"):
        raise AssetError(f"llm: {path} is not a .gguf file")
    if kind == "tts":
        if not (path.is_file() and path.suffix == ".onnx"):
            raise AssetError(f"tts: {path} is not the .onnx file of a Piper voice")
        if not Path(f"{path}.json").is_file():
            raise AssetError(f"tts: {path} needs {path.name}.json beside it")
    if kind in ("vad", "turn") and not path.is_file():
        raise AssetError(f"{kind}: {path} is not a file")
    return path


def _whisper(name: str) -> Path | None:
    repo = name if _REPO.fullmatch(name) else _whisper_repos().get(name)
    if repo is None:
        return None
    import huggingface_hub

    def snapshot(local_files_only: bool) -> Path | None:
        folder = Path(
            huggingface_hub.snapshot_download(
                repo,
                allow_patterns=_WHISPER_FILES,
                local_files_only=local_files_only,
                etag_timeout=hub.CONNECT_SECONDS,
            )
        )
        complete = (folder / "model.bin").exists() and any(folder.glob("vocabulary.*"))
        return folder if complete else None

    if hub.cached_file(repo, "model.bin") and (found := snapshot(local_files_only=True)):
        return found
    hub.probe(repo, "model.bin")
    try:
        found = snapshot(local_files_only=False)
    except Exception as error:  # its error classes differ between versions of the library and of its HTTP client
        raise SourceError(hub.line(error)) from error
    if found is None:
        raise SourceError(f"{repo} is not a complete faster-whisper model")
    return found


def _gguf(name: str) -> Path | None:
    match = _REPO_FILE.fullmatch(name)
    if match is None or match["suffix"].lower() != "gguf":
        return None
    shards = [match["path"]]
    if shard := _GGUF_SHARD.fullmatch(match["path"]):
        count = shard["count"]
        shards = [f"{shard['stem']}{number:05}-of-{count}.gguf" for number in range(1, int(count) + 1)]
    return _files(match["repo"], shards)


def _piper(name: str) -> Path | None:
    if voice := _PIPER_VOICE.fullmatch(name):
        language, region, speaker, quality = voice.groups()
        path = f"{language}/{language}_{region}/{speaker}/{quality}/{name}.onnx"
        return _files("rhasspy/piper-voices", [path, f"{path}.json"])
    match = _REPO_FILE.fullmatch(name)
    if match is None or match["suffix"] != "onnx":
        return None
    return _files(match["repo"], [match["path"], f"{match['path']}.json"])


_FROM_HUB: dict[str, Callable[[str], Path | None]] = {"stt": _whisper, "llm": _gguf, "tts": _piper}


def _files(repo: str, paths: list[str]) -> Path:
    """All of `paths` from one revision of `repo`, side by side in the hub's cache; returns the first."""
    found = [hub.cached_file(repo, path) or hub.download_file(repo, path) for path in paths]
    if len({file.parent for file in found}) > 1:  # the repository moved on between two visits
        found = [hub.download_file(repo, path) for path in paths]
    return found[0]


def _whisper_repos() -> dict[str, str]:
    """Short names of Whisper models and their repositories; faster-whisper's own table where it is installed."""
    try:
        from faster_whisper.utils import _MODELS
    except (ImportError, OSError):  # OSError: its native library does not load on this machine
        return {name: f"Systran/faster-whisper-{name}" for name in _SYSTRAN_WHISPER}
    return dict(_MODELS)


def _suggestion(kind: str, name: str) -> str:
    known = [asset.name for asset in assets.ASSETS if asset.kind == kind]
    candidates = known + (list(_whisper_repos()) if kind == "stt" else [])
    return f" ({did_you_mean(name, dict.fromkeys(candidates))})"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known names, and the nearest one if any is near."""
    import difflib

    names = list(known)
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    return f"known: {', '.join(names)}{hint}"

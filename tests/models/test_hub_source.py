"""The hub, played by a loopback server. `huggingface_hub` reads its environment once, hence the child processes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

COMMIT = "c0ffee" + "0" * 34


def put(server: Any, repo: str, path: str, content: bytes) -> None:
    """One file of a repository, as the hub answers for it."""
    for revision in ("main", COMMIT):
        server.serve(
            f"/{repo}/resolve/{revision}/{path}",
            content,
            ETag=f'"{hashlib.sha256(content).hexdigest()}"',
            X_Repo_Commit=COMMIT,
        )


def put_listing(server: Any, repo: str, names: list[str]) -> None:
    """What a snapshot of the whole repository starts from."""
    listing = {"id": repo, "sha": COMMIT, "siblings": [{"rfilename": name} for name in names], "private": False}
    tree = [{"type": "file", "path": name, "size": 1, "oid": "0" * 40} for name in names]
    for revision in ("main", COMMIT):
        server.serve(
            f"/api/models/{repo}/revision/{revision}", json.dumps(listing).encode(), Content_Type="application/json"
        )
        server.serve(f"/api/models/{repo}/tree/{revision}", json.dumps(tree).encode(), Content_Type="application/json")


@pytest.fixture
def hub_home(tmp_path: Path, models_dir: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Children reach the loopback hub, unless a test forbids it, and keep the hub's cache in the returned folder."""
    for name in [name for name in os.environ if name.startswith("HF_") or name == "TRANSFORMERS_OFFLINE"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    return tmp_path / "hf"


def child(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)


DOWNLOAD_TOY = f"""
    from speech_to_speech.models.assets import Asset, AssetFile, HubSource
    from speech_to_speech.models.downloader import Downloader

    source = HubSource("owner/toy-GGUF", "deep/toy.gguf")
    file = AssetFile("toy.gguf", "{hashlib.sha256(b"toy weights").hexdigest()}", 11, (source,))
    print(Downloader().ensure(Asset("toy", "llm", (file,), "MIT", "", True)))
"""


def test_a_file_of_the_table_comes_from_its_owners_repository_with_no_second_copy(
    server: Any, hub_home: Path, models_dir: Path
) -> None:
    put(server, "owner/toy-GGUF", "deep/toy.gguf", b"toy weights")

    ended = child(DOWNLOAD_TOY)

    path = models_dir / "llm" / "toy" / "toy.gguf"
    assert ended.stdout == f"{path}\n", ended.stderr
    assert path.read_bytes() == b"toy weights"
    copies = [copy for copy in hub_home.rglob("*") if copy.is_file() and copy.read_bytes() == b"toy weights"]
    assert copies == [] and not list(models_dir.rglob(".partial-*"))


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_no_connection_is_attempted_when_the_hub_is_forbidden(
    server: Any, hub_home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    put(server, "owner/toy-GGUF", "deep/toy.gguf", b"toy weights")
    monkeypatch.setenv(variable, "1")

    ended = child(DOWNLOAD_TOY)

    assert f"hub owner/toy-GGUF: {variable} is set" in ended.stderr
    assert server.requests == []


def test_other_bytes_than_the_pinned_ones_are_refused(server: Any, hub_home: Path, models_dir: Path) -> None:
    put(server, "owner/toy-GGUF", "deep/toy.gguf", b"TOY WEIGHTS")

    ended = child(DOWNLOAD_TOY)

    found = hashlib.sha256(b"TOY WEIGHTS").hexdigest()
    assert (
        f"refused, toy.gguf has SHA-256 {found}, expected {hashlib.sha256(b'toy weights').hexdigest()}" in ended.stderr
    )
    assert not list(models_dir.rglob("toy.gguf"))


def test_a_hub_that_cannot_be_reached_is_named_as_such(hub_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    ended = child(DOWNLOAD_TOY)

    assert "hub owner/toy-GGUF: no connection to the hub" in ended.stderr


def test_names_on_the_hub_are_fetched_once_and_then_found_without_it(
    server: Any, hub_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(server, "owner/toy-GGUF", "q4/toy.gguf", b"toy")
    put(server, "owner/split-GGUF", "split-00001-of-00002.gguf", b"one")
    put(server, "owner/split-GGUF", "split-00002-of-00002.gguf", b"two")
    voice = "en/en_GB/alan/low/en_GB-alan-low.onnx"
    put(server, "rhasspy/piper-voices", voice, b"voice")
    put(server, "rhasspy/piper-voices", f"{voice}.json", b"{}")
    whisper = {"config.json": b"{}", "model.bin": b"weights", "tokenizer.json": b"{}", "vocabulary.txt": b"a\nb\n"}
    put_listing(server, "owner/faster-whisper-toy", [*whisper, "README.md"])
    for name, content in whisper.items():
        put(server, "owner/faster-whisper-toy", name, content)
    code = """
        from speech_to_speech.models import resolve

        print(resolve("llm", "owner/toy-GGUF/q4/toy.gguf"))
        print(resolve("llm", "owner/split-GGUF/split-00001-of-00002.gguf"))
        print(resolve("tts", "en_GB-alan-low"))
        print(resolve("stt", "owner/faster-whisper-toy"))
    """

    ended = child(code)

    assert ended.returncode == 0, ended.stderr
    gguf, split, onnx, folder = map(Path, ended.stdout.splitlines())
    assert gguf.read_bytes() == b"toy"
    assert split.with_name("split-00002-of-00002.gguf").read_bytes() == b"two"
    assert onnx.read_bytes() == b"voice" and onnx.with_name("en_GB-alan-low.onnx.json").read_bytes() == b"{}"
    assert {name: (folder / name).read_bytes() for name in whisper} == whisper

    server.requests.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert child(code).stdout == ended.stdout
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert child(code).stdout == ended.stdout
    assert server.requests == []


def test_a_name_the_hub_does_not_have_is_refused_with_the_known_names(server: Any, hub_home: Path) -> None:
    ended = child("from speech_to_speech.models import resolve; resolve('tts', 'en_US-jo-medium')")

    last = ended.stderr.strip().splitlines()[-1]
    assert "AssetError: tts model en_US-jo-medium" in last and "404" in last
    assert last.endswith("did you mean en_US-joe-medium?)")


def test_a_name_on_the_hub_that_is_nowhere_on_this_machine_says_why_when_the_hub_is_forbidden(
    server: Any, hub_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    ended = child("from speech_to_speech.models import resolve; resolve('llm', 'owner/toy-GGUF/toy.gguf')")

    assert "AssetError: llm model owner/toy-GGUF/toy.gguf: HF_HUB_OFFLINE is set" in ended.stderr
    assert server.requests == []

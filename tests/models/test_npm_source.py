"""npm tarballs from a registry on the loopback, with the user's npm settings and no Node."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from speech_to_speech.errors import AssetError
from speech_to_speech.models import npm
from speech_to_speech.models.assets import Asset, NpmSource
from speech_to_speech.models.downloader import Downloader

VOICE = b"style vectors of a voice"


def tarball(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(f"package/voices/{name}.bin")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def integrity(content: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def publish(server: Any, package: str, content: bytes, tarball_url: str = "") -> NpmSource:
    """Put version 1.2.1 of `package` on the server, and return a source for its voice `heart`."""
    path = f"/{package}/-/{package.split('/')[-1]}-1.2.1.tgz"
    document = {"versions": {"1.2.1": {"dist": {"tarball": tarball_url or server.url + path}}}}
    server.serve(f"/{package.replace('/', '%2F')}", json.dumps(document).encode())
    server.serve(f"/{package}", json.dumps(document).encode())
    server.serve(path, content)
    return NpmSource(package, "1.2.1", integrity(content), len(content), "package/voices/heart.bin")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models_dir: Path) -> Path:
    """An empty home, with no npm settings in the environment."""
    import os

    for name in [name for name in os.environ if name.lower().startswith("npm_config_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("variable", ["npm_config_registry", "NPM_CONFIG_REGISTRY"])
def test_the_environment_chooses_the_registry(
    server: Any, make_asset: Callable[..., Asset], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    source = publish(server, "kokoro-js", tarball(heart=VOICE))
    monkeypatch.setenv(variable, server.url)

    path = Downloader().ensure(make_asset(("heart.bin", VOICE, (source,)), kind="tts"))

    assert path.read_bytes() == VOICE


def test_npmrc_without_credentials_chooses_the_registry(
    server: Any, make_asset: Callable[..., Asset], home: Path
) -> None:
    source = publish(server, "kokoro-js", tarball(heart=VOICE))
    (home / ".npmrc").write_text(f"; mirror\nfund=false\nregistry = {server.url}/\n")

    assert Downloader().ensure(make_asset(("heart.bin", VOICE, (source,)))).read_bytes() == VOICE
    assert all("authorization" not in headers for _, _, headers in server.requests)


def test_npmrc_credentials_go_to_their_own_registry_only(
    start_server: Callable[[], Any], make_asset: Callable[..., Asset], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, storage = start_server(), start_server()
    source = publish(registry, "kokoro-js", tarball(heart=VOICE))
    path = "/kokoro-js/-/kokoro-js-1.2.1.tgz"
    storage.serve("/blob", registry.pages[path][2])
    registry.pages[path] = (302, {"Location": f"{storage.url}/blob"}, b"")
    host = registry.url.removeprefix("http:")
    monkeypatch.setenv("NPM_SECRET", "s3cret")
    (home / ".npmrc").write_text(f"registry={registry.url}\n{host}/:_authToken=${{NPM_SECRET}}\n")

    assert Downloader().ensure(make_asset(("heart.bin", VOICE, (source,)))).read_bytes() == VOICE
    assert [headers["authorization"] for _, _, headers in registry.requests] == ["Bearer s3cret"] * 2
    assert all("authorization" not in headers for _, _, headers in storage.requests)


def test_a_mirror_serves_tarballs_whose_address_names_the_public_registry(
    server: Any, make_asset: Callable[..., Asset], monkeypatch: pytest.MonkeyPatch
) -> None:
    public = "https://registry.npmjs.org/kokoro-js/-/kokoro-js-1.2.1.tgz"
    source = publish(server, "kokoro-js", tarball(heart=VOICE), tarball_url=public)
    monkeypatch.setenv("npm_config_registry", server.url)

    assert Downloader().ensure(make_asset(("heart.bin", VOICE, (source,)))).read_bytes() == VOICE


def test_one_tarball_serves_all_files_of_an_asset(
    server: Any, make_asset: Callable[..., Asset], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tarball(heart=VOICE, bella=b"another voice")
    heart = publish(server, "kokoro-js", content)
    bella = NpmSource("kokoro-js", "1.2.1", heart.integrity, heart.size, "package/voices/bella.bin")
    monkeypatch.setenv("npm_config_registry", server.url)

    path = Downloader().ensure(make_asset(("heart.bin", VOICE, (heart,)), ("bella.bin", b"another voice", (bella,))))

    assert path.with_name("bella.bin").read_bytes() == b"another voice"
    assert [url for _, url, _ in server.requests].count("/kokoro-js/-/kokoro-js-1.2.1.tgz") == 1


def test_a_tarball_with_a_wrong_integrity_is_refused_with_expected_and_found(
    server: Any, make_asset: Callable[..., Asset], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = publish(server, "kokoro-js", tarball(heart=VOICE))
    evil = tarball(heart=b"evil")
    server.serve("/kokoro-js/-/kokoro-js-1.2.1.tgz", evil)
    monkeypatch.setenv("npm_config_registry", server.url)

    with pytest.raises(AssetError) as refused:
        Downloader().ensure(make_asset(("heart.bin", VOICE, (source,))))

    assert f"has integrity {integrity(evil)}, expected {source.integrity}" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"package": "no-such"}, "the npm registry answers 404"),
        ({"version": "9.9.9"}, "the registry has no version 9.9.9 of kokoro-js"),
        ({"member": "package/voices/none.bin"}, "the tarball does not hold package/voices/none.bin"),
    ],
)
def test_what_the_registry_lacks_is_named(
    server: Any,
    make_asset: Callable[..., Asset],
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, str],
    reason: str,
) -> None:
    from dataclasses import replace

    source = replace(publish(server, "kokoro-js", tarball(heart=VOICE)), **change)
    monkeypatch.setenv("npm_config_registry", server.url)

    with pytest.raises(AssetError, match=reason):
        Downloader().ensure(make_asset(("heart.bin", VOICE, (source,))))


def test_a_registry_that_cannot_be_reached_is_named_as_such(
    make_asset: Callable[..., Asset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")
    source = NpmSource("kokoro-js", "1.2.1", integrity(b""), 1, "package/voices/heart.bin")

    with pytest.raises(AssetError, match=r"npm kokoro-js@1\.2\.1: no connection to the npm registry"):
        Downloader().ensure(make_asset(("heart.bin", VOICE, (source,))))


@pytest.mark.parametrize(
    ("package", "settings", "registry"),
    [
        ("kokoro-js", {}, "https://registry.npmjs.org/"),
        ("kokoro-js", {"registry": "https://mirror.example/npm"}, "https://mirror.example/npm/"),
        ("@scope/voices", {"@scope:registry": "https://scope.example", "registry": "x:"}, "https://scope.example/"),
        ("@other/voices", {"@scope:registry": "https://scope.example"}, "https://registry.npmjs.org/"),
    ],
)
def test_the_registry_follows_npms_rules(package: str, settings: dict[str, str], registry: str) -> None:
    assert npm.registry_of(package, settings) == registry


def test_the_environment_wins_over_the_users_file_and_that_over_the_global_one(tmp_path: Path) -> None:
    (tmp_path / "global").write_text("registry=https://global.example\n@scope:registry=https://scope.example\n")
    (tmp_path / ".npmrc").write_text("registry=https://user.example\n")
    environment = {"HOME": str(tmp_path), "NPM_CONFIG_GLOBALCONFIG": str(tmp_path / "global")}

    settings = npm.read_settings(environment)
    assert settings["registry"] == "https://user.example"
    assert settings["@scope:registry"] == "https://scope.example"

    settings = npm.read_settings(environment | {"npm_config_registry": "https://env.example"})
    assert settings["registry"] == "https://env.example"

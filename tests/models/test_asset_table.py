"""The table itself: what each entry promises."""

from __future__ import annotations

import base64
import re

import pytest

from speech_to_speech.arguments_classes.llm_arguments import LLMArguments
from speech_to_speech.arguments_classes.stt_arguments import STTArguments
from speech_to_speech.arguments_classes.tts_arguments import TTSArguments
from speech_to_speech.arguments_classes.vad_arguments import VADArguments
from speech_to_speech.models.assets import ASSETS, Asset, AssetFile, HubSource, NpmSource, WheelMember, WheelSource

every_asset = pytest.mark.parametrize("asset", ASSETS, ids=lambda asset: asset.name)


@every_asset
def test_every_file_comes_from_at_least_one_package_registry(asset: Asset) -> None:
    for file in asset.files:
        assert any(isinstance(source, WheelSource | NpmSource) for source in file.sources), file.name


@every_asset
def test_every_hash_is_a_sha256(asset: Asset) -> None:
    for file in asset.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        for source in file.sources:
            if isinstance(source, WheelSource):
                assert all(re.fullmatch(r"[0-9a-f]{64}", part.sha256) for part in source.parts)
            if isinstance(source, NpmSource):
                assert len(base64.b64decode(source.integrity.removeprefix("sha512-"))) == 512 // 8


@every_asset
def test_every_asset_states_a_licence_and_what_it_is(asset: Asset) -> None:
    assert asset.licence and asset.description


def test_each_kind_has_one_default_and_it_is_the_default_of_its_command_line_option() -> None:
    defaults = [(asset.kind, asset.name) for asset in ASSETS if asset.default]
    assert sorted(defaults) == sorted(
        [
            ("vad", VADArguments().model),
            ("turn", VADArguments().turn_model),
            ("stt", STTArguments().model),
            ("llm", LLMArguments().model),
            ("tts", TTSArguments().voice),
        ]
    )


def test_whisper_models_have_the_four_files_faster_whisper_opens() -> None:
    for asset in ASSETS:
        if asset.kind == "stt":
            assert {file.name for file in asset.files} == {
                "model.bin",
                "config.json",
                "tokenizer.json",
                "vocabulary.txt",
            }


def test_piper_voices_have_their_configuration_beside_the_model() -> None:
    for asset in ASSETS:
        if asset.kind == "tts" and asset.name != "kokoro":
            assert [file.name for file in asset.files] == [f"{asset.name}.onnx", f"{asset.name}.onnx.json"]


def test_names_are_unique_and_no_kind() -> None:
    names = [asset.name for asset in ASSETS]
    assert len(set(names)) == len(names)
    assert not set(names) & {"all", "vad", "turn", "stt", "llm", "tts"}


def test_a_file_without_a_source_or_a_proper_hash_cannot_be_declared() -> None:
    hub = HubSource("owner/repo", "file")
    with pytest.raises(ValueError):
        AssetFile("file", "0" * 64, 1, ())
    with pytest.raises(ValueError):
        AssetFile("file", "0" * 63, 1, (hub,))


def test_a_wheel_without_a_pinned_version_cannot_be_declared() -> None:
    with pytest.raises(ValueError):
        WheelMember("some-package>=1", "0" * 64, 1, "member")

"""Flags, YAML and their mistakes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.arguments_classes.parsing import StrictParser, add_options, configuration_from, options
from speech_to_speech.cli import main
from speech_to_speech.errors import ConfigurationError

ROOT = Path(__file__).parents[1]


def _parse(*arguments: str) -> Configuration:
    parser = StrictParser()
    add_options(parser)
    return configuration_from(parser.parse_args(list(arguments)))


def test_without_flags_everything_has_its_default() -> None:
    assert _parse() == Configuration()


@pytest.mark.parametrize("flag", ["--stt_model", "--stt-model"])
def test_underscores_and_hyphens_are_the_same(flag: str) -> None:
    assert _parse(flag, "tiny.en").stt.model == "tiny.en"
    assert _parse(f"{flag}=tiny.en").stt.model == "tiny.en"


def test_hyphens_in_values_are_left_alone() -> None:
    assert _parse("--llm-model", "some-model.gguf").llm.model == "some-model.gguf"


def test_types_and_ranges_are_checked_by_name() -> None:
    assert _parse("--port", "9000").server.port == 9000
    assert _parse("--speculate", "false").server.speculate is False
    for flags, reason in (
        (["--port", "many"], "--port many: expected a whole number"),
        (["--port", "70000"], "--port 70000: expected at most 65535"),
        (["--max_sessions", "0"], "--max_sessions 0: expected at least 1"),
        (["--speculate", "maybe"], "--speculate maybe: expected true or false"),
        (["--log_level", "loud"], "expected one of debug, info, warning"),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            _parse(*flags)


def test_an_unknown_flag_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"'--stt_modle'.*'--stt_model'"):
        _parse("--stt_modle", "x")


def test_yaml_uses_the_same_names_and_flags_win(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("port: 9000\nstt-model: tiny.en\nllm_temperature: 1\n")
    configuration = _parse("--config", str(file), "--port", "9001")

    assert (configuration.server.port, configuration.stt.model, configuration.llm.temperature) == (9001, "tiny.en", 1.0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("stt_modle: x", "unknown key 'stt_modle'; did you mean 'stt_model'?"),
        ("port: [1]", r"server.yaml: port .*expected a whole number"),
        ("port: 1.5", "expected a whole number"),
        ("- a\n- b", "expected names and values"),
        ("a: b: c", "--config"),
    ],
)
def test_mistakes_in_yaml_are_named(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=reason):
        _parse("--config", str(file))


def test_a_missing_yaml_file_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml"):
        _parse("--config", "nowhere.yaml")


def test_every_option_has_a_name_of_its_own_and_help() -> None:
    names = [option.name for option in options()]
    assert len(set(names)) == len(names)
    assert all(option.metadata.get("help") for option in options())


def test_an_unknown_backend_is_refused_with_the_installed_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "0", "--tts", "pipper"]) == 1
    error = capsys.readouterr().err
    assert "--tts pipper" in error and "piper" in error


@pytest.mark.parametrize("program", [["-m", "speech_to_speech.cli"], [str(ROOT / "s2s_pipeline.py")]])
def test_both_programs_are_the_same_and_serve_without_a_command(program: list[str]) -> None:
    version = subprocess.run([sys.executable, *program, "--version"], capture_output=True, text=True)
    assert version.stdout.startswith("speech-to-speech 0.")
    wrong = subprocess.run([sys.executable, *program, "--no_such_flag"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[0].startswith("speech-to-speech: unknown argument '--no_such_flag'")


def test_nothing_hints_at_the_other_project() -> None:
    """PyPI's `speech-to-speech` is not ours; installing it would overwrite us."""
    import re

    for path in [*(ROOT / "src").rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        assert not re.search(r"pip install [\"']?speech-to-speech(?!-server)", path.read_text(encoding="utf-8")), path

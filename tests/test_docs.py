"""The documentation says what the program does: its commands parse, its reference is whole, its example runs."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.arguments_classes.parsing import configuration_from
from speech_to_speech.cli import COMMANDS, main, parse
from speech_to_speech.errors import Cancelled, ConfigurationError
from speech_to_speech.runtime.backends import load_stages
from speech_to_speech.TTS.base import TextToSpeech
from speech_to_speech.TTS.speech_feed import SpeechFeed

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE = ROOT / "docs" / "examples" / "beep_tts"

SCRIPTED_STAGES = """
[speech_to_speech.vad]
scripted = scripted_stages:LoudnessVAD
[speech_to_speech.turn]
scripted = speech_to_speech.bench.null_stages:NullTurnDetector
[speech_to_speech.stt]
scripted = scripted_stages:HelloSTT
[speech_to_speech.llm]
scripted = scripted_stages:EchoLLM
"""


def _blocks(page: Path, languages: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```(?:{languages})\b[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def _commands(page: Path) -> Iterator[list[str]]:
    """The arguments of every call of our program in the page's shell blocks and between its backticks."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in _blocks(page, "bash|sh|console") for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"`((?:speech-to-speech|python s2s_pipeline\.py) [^`\n…]+)`", text)
    for line in lines:
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words.pop(0)
        if words and Path(words[0]).name == "speech-to-speech":
            yield words[1:]
        elif words[1:2] == ["s2s_pipeline.py"]:
            yield words[2:]


COMMAND_LINES = [(page, arguments) for page in PAGES for arguments in _commands(page)]


@pytest.mark.parametrize(
    ("page", "arguments"), COMMAND_LINES, ids=[f"{page.name}: {shlex.join(words)}" for page, words in COMMAND_LINES]
)
def test_every_command_in_the_documentation_parses(
    page: Path, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("server.yaml").write_text("")
    try:
        namespace = parse(arguments)
    except SystemExit as help_was_shown:
        assert help_was_shown.code == 0
        return
    if hasattr(namespace, "config"):
        configuration_from(namespace)


def test_the_documentation_has_commands_of_every_kind() -> None:
    assert {arguments[0] for _, arguments in COMMAND_LINES} >= {"serve", "talk", "models", "download", "bench"}


@pytest.mark.parametrize(
    ("page", "content"), [(page, block) for page in PAGES for block in _blocks(page, "ya?ml")], ids=lambda value: ""
)
def test_every_configuration_in_the_documentation_is_accepted(page: Path, content: str, tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(content)
    assert configuration_from(parse(["serve", "--config", str(file)])) != Configuration()


# --- what is generated --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def help_of(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[str]], str]:
    """What a command prints with `-h`, in lines of any length."""
    monkeypatch.setenv("COLUMNS", "1000")

    def help_of(command: Sequence[str]) -> str:
        with pytest.raises(SystemExit):
            main([*command, "-h"])
        return capsys.readouterr().out

    return help_of


def test_the_reference_lists_every_option_of_the_server(
    hooks: ModuleType, help_of: Callable[[Sequence[str]], str]
) -> None:
    flags = set(re.findall(r"\[--(\w+)", help_of(["serve"]))) - {"config"}
    page = hooks.on_page_markdown("<!-- options -->\n")

    assert len(flags) > 20
    assert set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)) == flags


def test_the_reference_tells_type_default_and_range(hooks: ModuleType) -> None:
    table = hooks.on_page_markdown("<!-- options: port llm_api speculate tts_voice -->")

    assert "| `port` | whole number | `8765` | 0 to 65535 |" in table
    assert "| `llm_api` | text | `chat-completions` | `chat-completions`, `responses` |" in table
    assert "| `speculate` | `true` or `false` | `true` |  |" in table
    assert "| `tts_voice` | text | `en_US-joe-medium` |  |" in table


def test_the_backends_page_describes_every_backend_of_ours_and_all_their_options(hooks: ModuleType) -> None:
    page = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    ours = re.findall(r'^([\w-]+) = "speech_to_speech\.(?:VAD|STT|LLM|TTS)\.', declared, flags=re.MULTILINE)

    assert set(re.findall(r"^## (\S+)$", page, flags=re.MULTILINE)) == set(ours)
    described = re.findall(r"^\| `(\w+)` \|", hooks.on_page_markdown(page), flags=re.MULTILINE)
    of_stages = re.findall(r"^\| `((?:vad|stt|llm|tts)_\w+)` \|", hooks.reference(""), flags=re.MULTILINE)
    assert set(described) == set(of_stages)


def test_the_commands_page_shows_the_help_of_every_command(hooks: ModuleType) -> None:
    page = hooks.on_page_markdown((ROOT / "docs" / "commands.md").read_text(encoding="utf-8"))

    for command in ("COMMAND", *COMMANDS[:-1], "bench turn", "bench overhead"):
        assert re.search(rf"^usage: speech-to-speech (?:.*\] )?{command}\b", page, flags=re.MULTILINE), command


@pytest.mark.parametrize("request_", ["readme: No such section", "help: no-such-command", "options: no_such_option"])
def test_a_page_that_asks_for_what_there_is_not_is_refused(hooks: ModuleType, request_: str) -> None:
    with pytest.raises(ValueError, match=r"no[- _]such"):
        hooks.on_page_markdown(f"<!-- {request_} -->".replace("No such", "no such"))


@pytest.mark.parametrize(
    "loads",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css?family=X">',
        '<img alt="" src=http://images.example/x.png>',
        "<style>@import 'https://fonts.example/x.css';</style>",
    ],
)
def test_a_site_that_loads_from_another_host_is_refused(hooks: ModuleType, tmp_path: Path, loads: str) -> None:
    page = tmp_path / "index.html"
    page.write_text('<a href="https://example.org">a link is not a load</a><img src="assets/x.png">')
    hooks.on_post_build({"site_dir": str(tmp_path)})

    page.write_text(f"<html>{loads}</html>")
    with pytest.raises(RuntimeError, match=r"index\.html loads from another host"):
        hooks.on_post_build({"site_dir": str(tmp_path)})


def test_fragments_of_the_changelog_have_names_that_are_gathered() -> None:
    for fragment in (ROOT / "changelog.d").glob("*"):
        assert re.fullmatch(r"\+[a-z0-9-]+\.(added|changed|fixed|removed)\.md", fragment.name), fragment.name
        assert fragment.read_text(encoding="utf-8").strip().endswith("."), fragment.name


# --- the example of "Writing a backend" ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package, built and installed by pip without a network."""
    folder = tmp_path_factory.mktemp("example")
    source = shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    target = folder / "site-packages"
    ended = subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(target), str(source)], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return target


@pytest.fixture
def with_example(installed_example: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(installed_example))
    yield
    sys.modules.pop("beep_tts", None)


@pytest.fixture
def load(with_example: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TextToSpeech]:
    """Loads the example's synthesiser beside stages without models, chosen in a YAML file, by entry point."""
    scripted = tmp_path / "scripted_stages-0.dist-info"
    scripted.mkdir()
    (scripted / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted-stages\nVersion: 0\n")
    (scripted / "entry_points.txt").write_text(SCRIPTED_STAGES)
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "server.yaml"
    file.write_text("vad: scripted\nturn: scripted\nstt: scripted\nllm: scripted\ntts: beep\ntts_speed: 2\n")

    def load(*flags: str) -> TextToSpeech:
        return load_stages(configuration_from(parse(["serve", "--config", str(file), *flags]))).tts

    return load


@pytest.fixture
def synthesizer(load: Callable[..., TextToSpeech]) -> TextToSpeech:
    return load()


@pytest.mark.parametrize("command", [["serve"], ["talk"], ["demo"], ["doctor"], ["bench", "turn"]], ids=" ".join)
def test_help_lists_the_installed_backends_of_each_stage(
    with_example: None, command: list[str], help_of: Callable[[Sequence[str]], str]
) -> None:
    shown = re.findall(r"(\S+) backend: (.*?) \(default: (\S+)\)", help_of(command))

    assert {stage: default for stage, _, default in shown} == {
        "voice-activity": "silero",
        "turn-detection": "smart-turn",
        "speech-recognition": "faster-whisper",
        "language-model": "llama-cpp",
        "speech-synthesis": "piper",
    }
    installed = {stage: set(names.split(", ")) for stage, names, _ in shown}
    assert installed["speech-synthesis"] >= {"beep", "piper"}
    assert installed["language-model"] >= {"llama-cpp", "openai"}
    assert "beep_tts" not in sys.modules


def test_the_example_says_each_word_at_the_tempo_asked_for(synthesizer: TextToSpeech) -> None:
    """0.06 s a letter at tempo 1, here 2 by the YAML file and 0.5 by the request, and 0.05 s of pause a word."""
    pieces = list(synthesizer.synthesize("to be", voice="", speed=0.5, is_cancelled=lambda: False))

    rate = synthesizer.capabilities.sample_rate
    assert [len(samples) / rate for samples in pieces] == pytest.approx([0.17, 0.17], abs=1 / rate)
    assert all(samples.dtype == np.float32 and 0.1 < np.abs(samples).max() <= 1.0 for samples in pieces)


@pytest.mark.parametrize(("voice", "pitch_hz"), [("", 220.0), ("low", 220.0), ("high", 880.0)])
def test_the_example_has_the_voices_it_declares(synthesizer: TextToSpeech, voice: str, pitch_hz: float) -> None:
    [samples] = synthesizer.synthesize("beeeeeeeeeep", voice=voice, speed=1.0, is_cancelled=lambda: False)
    loudest = np.abs(np.fft.rfft(samples)).argmax() * synthesizer.capabilities.sample_rate / len(samples)

    assert loudest == pytest.approx(pitch_hz, abs=5.0)


def test_the_example_takes_the_voices_it_names(
    load: Callable[..., TextToSpeech], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["voices"]) == 0
    shown = capsys.readouterr().out.partition("--tts beep\n")[2].partition("--tts ")[0]

    assert (named := re.findall(r"^  --tts_voice (\w+)$", shown, flags=re.MULTILINE)) == ["low", "high"]
    assert [load("--tts_voice", voice).capabilities.voices[0] for voice in named] == named
    with pytest.raises(ConfigurationError, match="--tts_voice middle: expected low or high"):
        load("--tts_voice", "middle")


def test_the_example_can_be_cancelled(synthesizer: TextToSpeech) -> None:
    with pytest.raises(Cancelled):
        list(synthesizer.synthesize("too late", voice="", speed=1.0, is_cancelled=lambda: True))


def test_the_example_speaks_a_reply(synthesizer: TextToSpeech) -> None:
    feed = SpeechFeed(synthesizer)
    feed.add("Hello there. How are you?", end=True)
    pieces = []
    while clause := feed.next_clause():
        pieces += feed.speak(clause, lambda: False)

    assert sum(len(piece.samples) for piece in pieces) > 0
    assert pieces[-1].text_end == len("Hello there. How are you?")

"""The arrows of the design: who may import whom, and what the sans-I/O core must not know."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "speech_to_speech"

VALUES = {"errors", "stage_types"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "stage_types": set(),
    "backend": {"errors"},
    "arguments_classes": {"errors"},
    "audio": VALUES,
    "models": {"errors"},
    "conversation": VALUES,
    "realtime": VALUES | {"conversation"},
    "VAD": VALUES | {"backend", "audio", "models", "arguments_classes"},
    "STT": VALUES | {"backend", "audio", "models", "arguments_classes", "VAD"},
    "LLM": VALUES | {"backend", "models", "arguments_classes"},
    "TTS": VALUES | {"backend", "audio", "models", "arguments_classes"},
    "runtime": VALUES | {"VAD", "STT", "LLM", "TTS", "arguments_classes"},
    "session": VALUES | {"realtime", "conversation", "runtime", "audio"},
    "server": VALUES | {"session", "realtime", "conversation", "runtime", "arguments_classes"},
}
RUNTIME_MAY_IMPORT_OF_A_STAGE = {"base", "speech_feed"}


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _files(part: str) -> list[Path]:
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{part}.py"]


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_imports_point_downwards_only(part: str) -> None:
    for path in _files(part):
        for name in _imports(path):
            pieces = name.split(".")
            if pieces[0] == "speech_to_speech" and len(pieces) > 1 and pieces[1] not in ("__version__", part):
                assert pieces[1] in MAY_IMPORT[part], f"{path.name} imports {name}"


@pytest.mark.parametrize("part", ["realtime", "conversation"])
def test_the_core_knows_no_clock_and_no_threads(part: str) -> None:
    for path in _files(part):
        roots = {name.split(".")[0] for name in _imports(path)}
        assert not roots & {"time", "asyncio", "threading", "socket", "aiohttp", "concurrent"}, path.name


def test_the_runtime_knows_backends_by_entry_point_only() -> None:
    for path in _files("runtime"):
        for name in _imports(path):
            pieces = name.split(".")
            if len(pieces) > 2 and pieces[1] in ("VAD", "STT", "LLM", "TTS"):
                assert pieces[2] in RUNTIME_MAY_IMPORT_OF_A_STAGE, f"{path.name} imports {name}"


def test_only_two_files_import_the_gpl_runtime_of_piper() -> None:
    users = {path.name for path in PACKAGE.rglob("*.py") if "piper" in {n.split(".")[0] for n in _imports(path)}}
    assert users == {"piper_handler.py", "kokoro_phonemes.py"}


def test_help_imports_no_model_library() -> None:
    code = (
        "import sys; from speech_to_speech.cli import main\n"
        "try: main(['serve', '-h'])\n"
        "except SystemExit: pass\n"
        "heavy = {'onnxruntime', 'ctranslate2', 'xllamacpp', 'piper', 'faster_whisper', 'sounddevice', 'torch',"
        " 'numpy', 'aiohttp', 'rich', 'huggingface_hub'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "HEAVY []"

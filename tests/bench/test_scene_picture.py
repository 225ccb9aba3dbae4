"""The picture of wait against cut-offs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.test_scene_player import scene, step
from bench.test_scene_replay import SIX_HUNDRED_MS
from speech_to_speech.bench.scene_curve import curve, draw_curve, require_matplotlib
from speech_to_speech.errors import MissingDependencyError


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_curve(curve([(scene(step()), SIX_HUNDRED_MS)]), tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_line_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'speech-to-speech-server\[bench\]'"):
        require_matplotlib()

"""Which backends are installed, by entry point; no backend and no model library is imported to find out."""

from __future__ import annotations

from importlib.metadata import entry_points

ENTRY_POINT_PREFIX = "speech_to_speech."
STAGES = ("vad", "turn", "stt", "llm", "tts")


def installed_backends() -> dict[str, list[str]]:
    """The names of the installed backends of each stage, sorted."""
    return {stage: backend_names(stage) for stage in STAGES}


def backend_names(stage: str) -> list[str]:
    """The names of the installed backends of `stage` (vad, turn, stt, llm, tts)."""
    return sorted({point.name for point in entry_points(group=ENTRY_POINT_PREFIX + stage)})

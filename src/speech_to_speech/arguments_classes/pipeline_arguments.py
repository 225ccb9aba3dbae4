"""Which backend serves each stage, and how many threads they may use together."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PipelineArguments:
    """One flag per stage."""

    vad: str = field(default="silero", metadata={"help": "voice-activity backend", "stage": "vad"})
    turn: str = field(default="smart-turn", metadata={"help": "turn-detection backend", "stage": "turn"})
    stt: str = field(default="faster-whisper", metadata={"help": "speech-recognition backend", "stage": "stt"})
    llm: str = field(default="llama-cpp", metadata={"help": "language-model backend", "stage": "llm"})
    tts: str = field(default="piper", metadata={"help": "speech-synthesis backend", "stage": "tts"})
    threads: int = field(default=0, metadata={"help": "CPU threads for the models; 0: every core", "minimum": 0})

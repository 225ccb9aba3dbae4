"""One dataclass per component: command-line flags, YAML keys and the reference in the docs are made from them."""

from __future__ import annotations

from dataclasses import dataclass, field

from speech_to_speech.arguments_classes.llm_arguments import LLMArguments
from speech_to_speech.arguments_classes.pipeline_arguments import PipelineArguments
from speech_to_speech.arguments_classes.server_arguments import ServerArguments
from speech_to_speech.arguments_classes.stt_arguments import STTArguments
from speech_to_speech.arguments_classes.tts_arguments import TTSArguments
from speech_to_speech.arguments_classes.vad_arguments import VADArguments


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything a server is started with. Each field's metadata `prefix` goes before its options' names."""

    server: ServerArguments = field(default_factory=ServerArguments, metadata={"prefix": ""})
    pipeline: PipelineArguments = field(default_factory=PipelineArguments, metadata={"prefix": ""})
    vad: VADArguments = field(default_factory=VADArguments, metadata={"prefix": "vad_"})
    stt: STTArguments = field(default_factory=STTArguments, metadata={"prefix": "stt_"})
    llm: LLMArguments = field(default_factory=LLMArguments, metadata={"prefix": "llm_"})
    tts: TTSArguments = field(default_factory=TTSArguments, metadata={"prefix": "tts_"})


__all__ = [
    "Configuration",
    "LLMArguments",
    "PipelineArguments",
    "STTArguments",
    "ServerArguments",
    "TTSArguments",
    "VADArguments",
]

"""Options of speech recognition (`--stt_…`)."""

from __future__ import annotations

from dataclasses import dataclass, field

COMPUTE_TYPES = ("int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32")


@dataclass(frozen=True, slots=True)
class STTArguments:
    """Which model listens, and how it decodes."""

    model: str = field(
        default="base",
        metadata={"help": "faster-whisper model: base, tiny.en, any other faster-whisper name, a hub id or a folder"},
    )
    language: str = field(default="", metadata={"help": "BCP-47 code of the spoken language; empty: detected"})
    beam_size: int = field(
        default=1, metadata={"help": "beams of the final decode; partial decodes use one", "minimum": 1}
    )
    compute_type: str = field(default="int8", metadata={"help": "CTranslate2 compute type", "choices": COMPUTE_TYPES})

"""Options of speech synthesis (`--tts_…`)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TTSArguments:
    """Which voice speaks."""

    voice: str = field(
        default="en_US-joe-medium",
        metadata={
            "help": "Piper voice: a name such as en_US-joe-medium, or a path to its .onnx file; with --tts kokoro one "
            "of its voices, af_heart when not given"
        },
    )
    speed: float = field(default=1.0, metadata={"help": "tempo; 1 is the voice's own", "minimum": 0.25, "maximum": 4.0})

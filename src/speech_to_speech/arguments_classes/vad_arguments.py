"""Options of voice-activity and turn detection (`--vad_…`)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class VADArguments:
    """Where the detectors' models come from. Thresholds and timings belong to the session, not to the model."""

    model: str = field(
        default="silero-v5", metadata={"help": "voice-activity model: a name from `models`, or a path to an ONNX file"}
    )
    turn_model: str = field(
        default="smart-turn-v3.2",
        metadata={"help": "turn-detection model: a name from `models`, or a path to an ONNX file"},
    )

"""Opening an ONNX model: its share of the threads, no spinning, one-line errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from speech_to_speech.errors import ModelLoadError


def open_onnx_model(path: Path, threads: int) -> Any:
    """An `onnxruntime.InferenceSession` on the CPU whose waiting threads sleep, so that other stages can run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no base of their own
        raise ModelLoadError(f"{path} is not a usable ONNX model: {str(error).splitlines()[0]}") from error

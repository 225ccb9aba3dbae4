"""One CPU budget: how many threads each stage gets, and how idle threads wait. Set before any model library loads."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CPUBudget:
    """Threads per stage.

    STT, LLM and TTS of one turn mostly follow each other, so each may use every core; VAD and turn detection run
    beside them all the time and get one thread each.
    """

    vad: int
    turn: int
    stt: int
    llm: int
    tts: int


def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_budget(cores: int) -> CPUBudget:
    """The budget for `cores` cores. More than 8 threads per small model bring nothing but contention."""
    wide = max(1, min(cores, 8))
    return CPUBudget(vad=1, turn=1, stt=wide, llm=wide, tts=wide)


def apply_wait_policy() -> None:
    """Let waiting OpenMP threads sleep instead of spinning.

    Measured on 2 cores: with spinning threads a 193 ms transcription takes 419 ms beside a running language model, with
    sleeping ones 200 ms; beside another process a token took seconds. The price is about a quarter of the language
    model's tokens per second on an idle machine. Only what the user has not set is set.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    os.environ.setdefault("KMP_BLOCKTIME", "0")

"""Real models behind the tests, loaded once: SmolLM2 (135M) where speed matters, Qwen2.5-Coder (0.5B) for answers."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when llama.cpp loads; spinning threads starve each other

from speech_to_speech.arguments_classes.llm_arguments import LLMArguments
from speech_to_speech.LLM.llama_cpp import LlamaCpp

SMALL = LLMArguments(model="smollm2", context_tokens=512, slots=2, cache_ram_mib=0, batch_tokens=16)


@pytest.fixture(scope="session")
def smollm2() -> Iterator[LlamaCpp]:
    """Two slots of 512 tokens, no second cache behind them."""
    model = LlamaCpp.load(SMALL, threads=2)
    yield model
    model.close()


@pytest.fixture(scope="session")
def qwen() -> Iterator[LlamaCpp]:
    """Two slots of 1024 tokens."""
    arguments = LLMArguments(model="qwen2.5-coder-0.5b", context_tokens=1024, slots=2, cache_ram_mib=32)
    model = LlamaCpp.load(arguments, threads=2)
    yield model
    model.close()

"""llama.cpp itself, on SmolLM2: what it does on a stop, a cancel and an error, and what it leaves alone."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from speech_to_speech.arguments_classes.llm_arguments import LLMArguments
from speech_to_speech.errors import Cancelled, ModelLoadError, StageError
from speech_to_speech.LLM.llama_server import LlamaServer, PromptTooLongError
from speech_to_speech.models import resolve

BATCH = 16
ARGUMENTS = LLMArguments(context_tokens=512, slots=2, cache_ram_mib=0, batch_tokens=BATCH)


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    server = LlamaServer(resolve("llm", "smollm2"), ARGUMENTS, threads=2)
    yield server
    server.close()


def never() -> bool:
    return False


def body(text: str, slot: int = 0, answer: str = "", **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}] + ([{"role": "assistant", "content": answer}] if answer else [])
    fixed = {"id_slot": slot, "temperature": 0, "return_progress": True, "cache_prompt": True}
    return {"messages": messages, **fixed, **fields}


def words(count: int, seed: str) -> str:
    return " ".join(f"{seed}{index}" for index in range(count))


def content(chunk: dict[str, Any]) -> str:
    return chunk["choices"][0]["delta"].get("content") or "" if chunk.get("choices") else ""


def tokens_in_cache(server: LlamaServer, request: dict[str, Any]) -> tuple[int, int]:
    """How many tokens of the prompt the slot holds already, and how many the prompt has; nothing of it is computed."""
    completion = server.complete(request)
    progress = next(completion.chunks(never))["prompt_progress"]
    completion.wait_ended(never)
    assert progress["processed"] == progress["cache"]
    return progress["cache"], progress["total"]


def test_a_cancel_during_the_prompt_stops_within_two_batches(server: LlamaServer):
    request = body(words(100, "apple"))
    completion = server.complete({**request, "n_predict": 0})
    read = [0]
    with pytest.raises(Cancelled):
        for chunk in completion.chunks(lambda: read[-1] >= 3 * BATCH):
            read.append(chunk["prompt_progress"]["processed"])
    completion.wait_ended(never)
    cached, total = tokens_in_cache(server, request)
    assert total > 8 * BATCH
    assert 3 * BATCH <= read[-1] <= cached <= read[-1] + 2 * BATCH


def test_a_stop_during_the_answer_ends_it_after_a_token_or_two(server: LlamaServer):
    question, answer = "Count.", "12345678901234567890"  # SmolLM2 has one token for each digit, none for more
    completion = server.complete(body(question, slot=1, grammar=f'root ::= "{answer}"', n_predict=40))
    chunks = completion.chunks(never)
    prompt = next(chunks)["prompt_progress"]["total"]
    tokens = 0
    while tokens < 4:
        tokens += bool(content(next(chunks)))
    completion.stop()
    completion.wait_ended(never)
    cached, total = tokens_in_cache(server, body(question, slot=1, answer=answer))
    assert total > prompt + 20
    assert prompt + tokens - 1 <= cached <= prompt + tokens + 2


def test_a_reader_that_leaves_stops_the_run(server: LlamaServer):
    request = body(words(100, "pear"))
    completion = server.complete({**request, "n_predict": 0})
    chunks = completion.chunks(never)
    read = next(chunks)["prompt_progress"]["processed"]
    chunks.close()
    completion.wait_ended(never)
    cached, total = tokens_in_cache(server, request)
    assert total > 8 * BATCH
    assert cached <= read + 2 * BATCH


def test_a_prompt_beyond_the_context_is_refused_with_its_length(server: LlamaServer):
    with pytest.raises(PromptTooLongError) as caught:
        list(server.complete(body("word " * 600)).chunks(never))
    assert 600 <= caught.value.tokens <= 700


@pytest.mark.parametrize("fields", [{"messages": 5}, {"tool_choice": "sideways", "tools": []}, {"n_predict": "many"}])
def test_what_llama_cpp_refuses_is_raised(server: LlamaServer, fields: dict[str, Any]):
    with pytest.raises(StageError, match=r"llama\.cpp"):
        list(server.complete(body("hello", **fields)).chunks(never))


def test_characters_of_several_tokens_arrive_whole(server: LlamaServer):
    grammar = 'root ::= "Grüße 🥳 你好 ᚠᛇᚻ 👩‍🚀."'
    deltas = [content(chunk) for chunk in server.complete(body("Hi", grammar=grammar, n_predict=60)).chunks(never)]
    assert "".join(deltas) == "Grüße 🥳 你好 ᚠᛇᚻ 👩‍🚀."
    assert not any("\ufffd" in delta for delta in deltas)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_no_tcp_port_is_open(server: LlamaServer):
    listening = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(table):
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            listening |= {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
    ours = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            ours.add(os.readlink(descriptor))
        except FileNotFoundError:
            continue
    assert ours & listening == set()


def test_the_context_is_what_was_asked_for_or_what_the_model_was_trained_on(server: LlamaServer):
    assert server.context_tokens == 512
    beyond = LlamaServer(resolve("llm", "smollm2"), LLMArguments(context_tokens=9000, slots=1), threads=2)
    assert beyond.context_tokens == 8192  # the model card's context length
    beyond.close()


def test_closing_stops_what_runs_and_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    caught: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: caught.append(number))
    try:
        server = LlamaServer(resolve("llm", "smollm2"), ARGUMENTS, threads=2)
        os.kill(os.getpid(), signal.SIGTERM)
        completion = server.complete(body("Count to a hundred.", n_predict=400))
        next(completion.chunks(never))
        server.close()
        with pytest.raises(Cancelled):
            list(completion.chunks(never))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught == [signal.SIGTERM]
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("contents", [None, b"", b"GGUF" + bytes(200), b"no model at all"])
def test_a_file_that_is_no_model_is_named(tmp_path: Path, contents: bytes | None, capfd: pytest.CaptureFixture[str]):
    path = tmp_path / "broken.gguf"
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(ModelLoadError, match=r"broken\.gguf"):
        LlamaServer(path, ARGUMENTS, threads=1)
    assert capfd.readouterr() == ("", "")

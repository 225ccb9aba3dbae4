"""Whatever a client sends and whenever: the server's events stay valid and ordered, and nothing is raised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from virtual_session import Said, VirtualSession

ITEM_IDS = st.sampled_from(["a", "b", "item_5", "item_8", "root", ""])
DETECTIONS = st.sampled_from(
    [
        None,
        {"type": "semantic_vad", "eagerness": "high"},
        {"type": "semantic_vad", "create_response": False},
        {"type": "semantic_vad", "interrupt_response": False},
        {"type": "server_vad", "silence_duration_ms": 0},
        {"type": "server_vad", "silence_duration_ms": 200, "prefix_padding_ms": 0},
    ]
)


def _session(**fields: Any) -> dict[str, Any]:
    return {"type": "session.update", "session": {"type": "realtime", **fields}}


def _item(item_id: str, role: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "id": item_id, "role": role, "content": [{"type": kind, "text": "Hello."}]}


EVENTS = st.one_of(
    st.builds(lambda d: _session(audio={"input": {"turn_detection": d, "transcription": {"model": "x"}}}), DETECTIONS),
    st.sampled_from([_session(instructions="Rhyme."), _session(output_modalities=["text"])]),
    st.sampled_from(
        [
            {"type": "input_audio_buffer.commit"},
            {"type": "input_audio_buffer.clear"},
            {"type": "response.create"},
            {"type": "response.create", "response": {"output_modalities": ["text"]}},
            {"type": "response.cancel"},
            {"type": "output_audio_buffer.clear"},
        ]
    ),
    st.builds(
        lambda i, r: {"type": "conversation.item.create", "item": _item(i, r)},
        ITEM_IDS,
        st.sampled_from(["user", "assistant", "system"]),
    ),
    st.builds(
        lambda kind, i: {"type": f"conversation.item.{kind}", "item_id": i},
        st.sampled_from(["retrieve", "delete"]),
        ITEM_IDS,
    ),
    st.builds(
        lambda i, ms: {"type": "conversation.item.truncate", "item_id": i, "content_index": 0, "audio_end_ms": ms},
        ITEM_IDS,
        st.sampled_from([0, 100, 400, 5000]),
    ),
)
MOMENTS = st.lists(st.tuples(st.integers(0, 119), EVENTS), max_size=12)
"""(tenths of a second, event)"""

SPEECH = st.lists(
    st.tuples(
        st.integers(1, 15), st.integers(1, 20), st.sampled_from(["Hello there?", "Mm-hmm.", "", "Go on and on."])
    ),
    max_size=4,
)
"""(tenths of silence, tenths of speech, words)"""


def _run(moments: list[tuple[int, dict[str, Any]]], speech: list[tuple[int, int, str]], fail: dict[str, int]) -> None:
    script, time = [], 0.3
    for silence, length, text in speech:
        script.append(Said(time + silence / 10, time + (silence + length) / 10, text))
        time = script[-1].end
    answer = "One two three four five six. Seven eight nine."
    session = VirtualSession(script, answer=lambda messages: answer, fail=dict(fail))
    for moment, event in sorted(moments, key=lambda pair: pair[0]):
        session.at(moment / 10 + 0.001, lambda event=event: session.send(event))
    session.run(12)
    session.run(40)
    assert session.session.next_wakeup(40.0) is None, "something still waits in silence"
    created = [event["response"]["id"] for event in session.of_type("response.created")]
    done = [event["response"]["id"] for event in session.of_type("response.done")]
    assert created == done, "every response that was created is done"


FAILURES = st.dictionaries(st.sampled_from(["stt", "llm", "tts", "turn"]), st.integers(0, 2), max_size=2)


@given(MOMENTS, SPEECH, FAILURES)
@settings(max_examples=40, derandomize=True)
def test_some_sequences(
    moments: list[tuple[int, dict[str, Any]]], speech: list[tuple[int, int, str]], fail: dict[str, int]
) -> None:
    _run(moments, speech, fail)


@pytest.mark.acceptance
@pytest.mark.timeout(1200)
@given(MOMENTS, SPEECH, FAILURES)
@settings(max_examples=2000)
def test_many_sequences(
    moments: list[tuple[int, dict[str, Any]]], speech: list[tuple[int, int, str]], fail: dict[str, int]
) -> None:
    _run(moments, speech, fail)

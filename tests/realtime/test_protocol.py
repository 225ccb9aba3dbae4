"""Client events and their exact answers."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from speech_to_speech.errors import InvalidRequestError
from speech_to_speech.realtime.client_events import decode_client_event
from speech_to_speech.stage_types import ToolCall
from virtual_session import Said, VirtualSession

QUESTION = Said(0.5, 2.0, "What is the capital of France?")


def _message(text: str, role: str = "user", **more: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}], **more}


def _update(session: VirtualSession, **fields: Any) -> None:
    session.send({"type": "session.update", "session": {"type": "realtime", **fields}})


def _error(session: VirtualSession) -> dict[str, Any]:
    error: dict[str, Any] = session.of_type("error")[-1]["error"]
    return error


def test_the_first_event_is_session_created_with_semantic_vad_on() -> None:
    session = VirtualSession()

    assert session.types()[0] == "session.created"
    detection = session.events[0][1]["session"]["audio"]["input"]["turn_detection"]
    assert detection == {
        "type": "semantic_vad",
        "eagerness": "auto",
        "create_response": True,
        "interrupt_response": True,
    }


def test_an_update_changes_only_what_it_names_and_reports_all() -> None:
    session = VirtualSession()
    before = session.of_type("session.created")[0]["session"]
    _update(session, instructions="Be brief.")

    after = session.of_type("session.updated")[0]["session"]
    assert after == {**before, "instructions": "Be brief."}


def test_empty_values_clear_what_can_be_cleared() -> None:
    session = VirtualSession()
    tool = {"type": "function", "name": "clock", "parameters": {"type": "object"}}
    _update(session, instructions="Be brief.", tools=[tool])
    _update(session, instructions="", tools=[], audio={"input": {"turn_detection": None}})

    after = session.of_type("session.updated")[-1]["session"]
    assert (after["instructions"], after["tools"], after["audio"]["input"]["turn_detection"]) == ("", [], None)


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"temperature": 1}, "unknown_parameter", "session.temperature"),
        ({"output_modalities": ["audio", "text"]}, "invalid_value", "session.output_modalities"),
        ({"max_output_tokens": 0}, "invalid_value", "session.max_output_tokens"),
        ({"max_output_tokens": 5000}, "invalid_value", "session.max_output_tokens"),
        ({"tool_choice": "maybe"}, "invalid_value", "session.tool_choice"),
        ({"tools": [{"type": "function"}]}, "missing_required_parameter", "session.tools[0].name"),
        ({"audio": {"output": {"speed": 9}}}, "invalid_value", "session.audio.output.speed"),
        ({"audio": {"output": {"voice": "nobody"}}}, "invalid_value", "session.audio.output.voice"),
        (
            {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}},
            "invalid_value",
            "session.audio.input.format.rate",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 5}}}},
            "invalid_value",
            "session.audio.input.turn_detection.threshold",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "threshold": 0.5}}}},
            "unknown_parameter",
            "session.audio.input.turn_detection.threshold",
        ),
        ({"audio": "loud"}, "invalid_value", "session.audio"),
    ],
)
def test_a_wrong_value_is_named_and_changes_nothing(fields: dict[str, Any], code: str, param: str) -> None:
    session = VirtualSession()
    session.send({"type": "session.update", "event_id": "mine", "session": {"type": "realtime", **fields}})

    assert _error(session)["code"] == code
    assert _error(session)["param"] == param
    assert _error(session)["event_id"] == "mine"
    assert "session.updated" not in session.types()


def test_stock_clients_may_name_any_model_and_tracing() -> None:
    session = VirtualSession()
    _update(session, model="gpt-realtime-2.1", tracing="auto", audio={"output": {"voice": "marin"}})

    updated = session.of_type("session.updated")[0]["session"]
    assert updated["model"] == "scripted"
    assert updated["audio"]["output"]["voice"] == "marin"


@pytest.mark.parametrize(
    ("frame", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"[1, 2]", "invalid_json", None),
        (b'"text"', "invalid_json", None),
        (b"[" * 100_000, "invalid_json", None),
        (b"\xff\xfe", "invalid_json", None),
        (b'{"event_id": "mine"}', "missing_required_parameter", "type"),
        (b'{"type": "session.start", "event_id": "mine"}', "invalid_value", "type"),
        (b'{"type": ["a"], "event_id": "mine"}', "invalid_value", "type"),
        (b'{"type": "session.update", "event_id": "mine"}', "missing_required_parameter", "session"),
        (b'{"type": "session.update", "session": "x", "event_id": "mine"}', "invalid_value", "session"),
        (b'{"type": "input_audio_buffer.append", "audio": "%%%", "event_id": "mine"}', "invalid_value", "audio"),
        (b'{"type": "input_audio_buffer.append", "audio": 7, "event_id": "mine"}', "invalid_value", "audio"),
    ],
)
def test_a_malformed_frame_is_an_error_with_the_clients_event_id(frame: bytes, code: str, param: str | None) -> None:
    session = VirtualSession()
    with pytest.raises(InvalidRequestError) as refused:
        decode_client_event(frame)
    session.session.report_invalid(refused.value)
    session._drain()

    assert (_error(session)["code"], _error(session)["param"]) == (code, param)
    if b"mine" in frame:
        assert _error(session)["event_id"] == "mine"


def test_a_text_conversation_needs_no_audio() -> None:
    session = VirtualSession(answer=lambda messages: f"You said: {messages[-1].text}")
    _update(session, output_modalities=["text"])
    session.send({"type": "conversation.item.create", "item": _message("Hello", id="mine")})
    session.send({"type": "response.create"})
    session.run(3, audio=False)

    assert session.of_type("conversation.item.added")[0]["item"]["id"] == "mine"
    assert session.of_type("response.output_text.done")[0]["text"] == "You said: Hello"
    assert not any("audio" in kind for kind in session.types())
    usage = session.of_type("response.done")[0]["response"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (10, 3, 13)


def test_the_events_of_a_spoken_response_come_in_the_order_clients_rely_on() -> None:
    session = VirtualSession()
    session.send({"type": "conversation.item.create", "item": _message("Hello")})
    session.send({"type": "response.create", "response": {"metadata": {"client_event_id": "x"}}})
    session.run(4, audio=False)

    kinds = [kind for kind in session.types() if kind not in ("response.output_audio.delta",)]
    start = kinds.index("response.created")
    assert kinds[start:] == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
    ]
    assert session.of_type("response.created")[0]["response"]["metadata"] == {"client_event_id": "x"}


def test_items_can_be_put_in_front_and_in_between() -> None:
    session = VirtualSession()
    for item_id, previous in (("b", None), ("a", "root"), ("ab", "a")):
        event: dict[str, Any] = {"type": "conversation.item.create", "item": _message(item_id, id=item_id)}
        if previous:
            event["previous_item_id"] = previous
        session.send(event)

    assert [item.id for item in session.session.history] == ["a", "ab", "b"]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"type": "conversation.item.retrieve", "item_id": "none"}, "item_retrieve_invalid_item_id"),
        ({"type": "conversation.item.delete", "item_id": "none"}, "item_delete_invalid_item_id"),
        (
            {"type": "conversation.item.truncate", "item_id": "none", "content_index": 0, "audio_end_ms": 1},
            "item_truncate_invalid_item_id",
        ),
        ({"type": "response.cancel"}, "response_cancel_not_active"),
        ({"type": "input_audio_buffer.commit"}, "input_audio_buffer_commit_empty"),
        (
            {"type": "conversation.item.create", "item": _message("x", id="taken")},
            "item_create_duplicate_item_id",
        ),
        (
            {
                "type": "conversation.item.create",
                "item": {"type": "message", "role": "assistant", "content": [{"type": "output_audio"}]},
            },
            "missing_required_parameter",
        ),
    ],
)
def test_what_cannot_be_done_has_the_documented_code(event: dict[str, Any], code: str) -> None:
    session = VirtualSession()
    session.send({"type": "conversation.item.create", "item": _message("x", id="taken")})
    session.send({**event, "event_id": "mine"})

    assert (_error(session)["code"], _error(session)["event_id"]) == (code, "mine")


def test_a_second_response_while_one_is_going_on_is_refused() -> None:
    session = VirtualSession()
    session.send({"type": "response.create"})
    session.send({"type": "response.create"})

    assert _error(session)["code"] == "conversation_already_has_active_response"


def test_a_cancelled_response_is_done_with_all_its_parts() -> None:
    session = VirtualSession(answer=lambda messages: "One two three four five six seven eight. " * 3)
    session.send({"type": "response.create"})
    session.run(1.5, audio=False)
    session.send({"type": "response.cancel"})

    assert session.types()[-6:] == [
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
    ]
    done = session.of_type("response.done")[0]["response"]
    assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "client_cancelled")
    assert done["output"][0]["status"] == "incomplete"


def test_push_to_talk_commits_and_answers_on_demand_only() -> None:
    session = VirtualSession([QUESTION])
    _update(session, audio={"input": {"turn_detection": None, "transcription": {"model": "x"}}})
    session.run(2.5)
    session.send({"type": "input_audio_buffer.commit"})
    session.run(4)
    assert "response.created" not in session.types()
    session.send({"type": "response.create"})
    session.run(7)

    kinds = session.types()
    assert "input_audio_buffer.speech_started" not in kinds
    assert kinds.index("input_audio_buffer.committed") < kinds.index("conversation.item.added")
    assert session.of_type("conversation.item.input_audio_transcription.completed")[0]["transcript"] == QUESTION.text
    assert session.conversation() == [("user", QUESTION.text), ("assistant", "Paris.")]


def test_a_response_asked_for_right_after_the_commit_waits_for_the_transcript() -> None:
    session = VirtualSession([QUESTION])
    _update(session, audio={"input": {"turn_detection": None}})
    session.run(2.5)
    session.send({"type": "input_audio_buffer.commit"})
    session.send({"type": "response.create"})
    session.run(6)

    assert session.prompts() == [[session.prompts()[0][0], ("user", QUESTION.text)]]


def test_cleared_audio_is_gone() -> None:
    session = VirtualSession([QUESTION])
    _update(session, audio={"input": {"turn_detection": None}})
    session.run(2.5)
    session.send({"type": "input_audio_buffer.clear"})
    session.send({"type": "input_audio_buffer.commit"})

    assert "input_audio_buffer.cleared" in session.types()
    assert _error(session)["code"] == "input_audio_buffer_commit_empty"


def test_a_client_truncation_decides_what_was_heard_and_may_take_it_back() -> None:
    answer = "One two three four five six seven."  # 34 characters, 1,700 ms
    session = VirtualSession(answer=lambda messages: answer)
    session.send({"type": "response.create"})
    session.run(5, audio=False)
    item_id = session.of_type("response.output_item.added")[0]["item"]["id"]

    def heard_after(milliseconds: int) -> str:
        session.send(
            {
                "type": "conversation.item.truncate",
                "item_id": item_id,
                "content_index": 0,
                "audio_end_ms": milliseconds,
            }
        )
        return dict(session.conversation())["assistant"]

    assert heard_after(700) == "One two three"
    assert heard_after(1200) == "One two three four five"
    assert heard_after(1720) == answer  # one frame beyond the end is the end
    assert len(session.of_type("conversation.item.truncated")) == 3
    heard_after(2000)
    assert _error(session)["message"] == "Audio content of 1700ms is already shorter than 2000ms"


def test_a_retrieved_item_brings_its_audio() -> None:
    session = VirtualSession([QUESTION]).run(6)
    user = session.of_type("conversation.item.added")[0]["item"]["id"]
    session.send({"type": "conversation.item.retrieve", "item_id": user})

    [retrieved] = session.of_type("conversation.item.retrieved")
    audio = base64.b64decode(retrieved["item"]["content"][0]["audio"])
    # From 300 ms before the onset to the end of the turn's silence, 48 bytes a ms; the onset lies on a frame.
    stopped = session.of_type("input_audio_buffer.speech_stopped")[0]["audio_end_ms"]
    started = session.of_type("input_audio_buffer.speech_started")[0]["audio_start_ms"]
    assert abs(len(audio) - (stopped - started) * 48) <= 48
    assert retrieved["item"]["content"][0]["transcript"] == QUESTION.text


def test_a_function_call_is_announced_with_name_and_call_id() -> None:
    call = ToolCall("call_1", "clock", '{"city": "Paris"}')
    session = VirtualSession(answer=lambda messages: [call])
    _update(session, tools=[{"type": "function", "name": "clock"}])
    session.send({"type": "response.create"})
    session.run(3, audio=False)

    added = session.of_type("conversation.item.added")[0]["item"]
    assert (added["type"], added["name"], added["call_id"], added["arguments"]) == (
        "function_call",
        "clock",
        "call_1",
        "",
    )
    [done] = session.of_type("response.function_call_arguments.done")
    assert (done["name"], done["arguments"]) == ("clock", '{"city": "Paris"}')
    assert session.of_type("response.done")[0]["response"]["output"][0]["status"] == "completed"


def test_the_voice_cannot_change_after_it_was_heard() -> None:
    session = VirtualSession()
    session.send({"type": "response.create"})
    session.run(3, audio=False)
    _update(session, audio={"output": {"voice": "marin"}})

    assert _error(session)["code"] == "cannot_update_voice"


def test_one_response_can_be_text_in_a_spoken_session() -> None:
    session = VirtualSession()
    session.send({"type": "response.create", "response": {"output_modalities": ["text"], "instructions": "Rhyme."}})
    session.run(3, audio=False)

    assert session.prompts()[0][0] == ("system", "Rhyme.")
    assert session.of_type("response.output_text.done")[0]["text"] == "Paris."
    assert session.of_type("session.created")[0]["session"]["output_modalities"] == ["audio"]

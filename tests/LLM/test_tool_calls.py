import json
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_to_speech.LLM.tool_calls import ToolCallParser, calls_schema
from speech_to_speech.stage_types import TextDelta, Tool, ToolCall

NAMES = ("get_weather", "set_timer", "get_time")
WEATHER = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
TIMER = '{"name": "set_timer", "arguments": {"minutes": 5}}'


def parse(chunks: Iterable[str]) -> tuple[str, list[tuple[str, str]]]:
    """What is said, and the calls as (name, arguments)."""
    parser = ToolCallParser(NAMES)
    pieces = [piece for chunk in chunks for piece in parser.feed(chunk)] + parser.finish()
    said = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    return said, [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, ToolCall)]


@pytest.mark.parametrize(
    "written",
    [
        WEATHER,
        f"  \n{WEATHER}\n",
        f"```json\n{WEATHER}\n```",
        f"```\n{WEATHER}\n```",
        f"<tool_call>\n{WEATHER}\n</tool_call>",
        f"[{WEATHER}]",
        f"```json\n[\n{WEATHER}\n]\n```",
        f"{WEATHER}.json\n\nYou can use the following tools",
        '{"name": "get_weather", "parameters": {"city": "Paris"}}',
        '{"arguments": {"city": "Paris"}, "name": "get_weather"}',
        '{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}',
        '{"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}',
        '{"function": "get_weather", "arguments": {"city": "Paris"}}',
        r'{"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}',
    ],
)
def test_a_call_is_recognised_in_every_form_and_never_spoken(written: str):
    said, calls = parse([written])
    assert said.strip() == ""
    assert calls == [("get_weather", '{"city": "Paris"}')]


def test_arguments_keep_the_text_the_model_wrote():
    written = '{ "name":"set_timer" ,"arguments":{"minutes" :  5.0, "label": "{\\"}\\u00e9"}\n}'
    assert parse([written])[1] == [("set_timer", '{"minutes" :  5.0, "label": "{\\"}\\u00e9"}')]


def test_a_call_without_arguments_gets_an_empty_object():
    assert parse(['{"name": "get_time"}'])[1] == [("get_time", "{}")]


def test_what_is_said_before_a_call_is_speech():
    said, calls = parse([f"Let me look. <tool_call>{WEATHER}</tool_call>"])
    assert said.strip() == "Let me look."
    assert len(calls) == 1


@pytest.mark.parametrize(
    "written",
    [
        f"{WEATHER}\n{TIMER}",
        f"[{WEATHER}, {TIMER}]",
        f"<tool_call>\n{WEATHER}\n</tool_call>\n<tool_call>\n{TIMER}\n</tool_call>",
        f"```json\n{WEATHER}\n```\n```json\n{TIMER}\n```",
    ],
)
def test_several_calls_are_all_made(written: str):
    said, calls = parse([written])
    assert said.strip() == ""
    assert [name for name, _ in calls] == ["get_weather", "set_timer"]


def test_every_call_has_an_id_of_its_own():
    pieces = ToolCallParser(NAMES).feed(WEATHER + TIMER)
    ids = {piece.call_id for piece in pieces if isinstance(piece, ToolCall)}
    assert len(ids) == 2
    assert all(identifier.startswith("call_") for identifier in ids)


@pytest.mark.parametrize(
    "written",
    [
        "It is 5 < 6, and 7 > 6.",
        "Sets are written {1, 2, 3} in mathematics.",
        "[laughs] That is funny [really].",
        'A person is {"age": 5, "city": "Paris"} in JSON.',
        '{"name": "Bob", "age": 3}',
        "```python\nprint({})\n```",
        "use `code` here",
        "trailing {",
        "trailing ``",
        "trailing <tool",
        "",
    ],
)
def test_text_that_is_no_call_is_spoken_unchanged(written: str):
    assert parse([written]) == (written, [])
    assert parse(written) == (written, [])


def test_a_tag_without_a_call_is_not_spoken():
    assert parse(["<tool_call>" * 5 + "\nWell</tool_call>"]) == ("\nWell", [])
    assert parse(["Well <tool_call>"]) == ("Well ", [])


def test_text_is_not_held_back_longer_than_it_may_become_a_call():
    parser = ToolCallParser(NAMES)
    assert parser.feed("Hello") == [TextDelta("Hello")]
    assert parser.feed(" {") == [TextDelta(" ")]
    assert parser.feed("x") == [TextDelta("{"), TextDelta("x")]


def test_a_call_cut_off_by_the_token_limit_is_not_spoken():
    for length in range(len('{"name"'), len(WEATHER)):
        assert parse([WEATHER[:length]]) == ("", [])


def test_a_call_of_an_unknown_function_is_neither_spoken_nor_made():
    parser = ToolCallParser(NAMES)
    assert parser.feed('{"name": "Joke", "arguments": {"message": "Why?"}}') + parser.finish() == []
    assert parser.unknown_call


def test_talk_behind_a_call_ends_the_answer():
    parser = ToolCallParser(NAMES)
    parser.feed(f"```json\n{WEATHER}\n```\n")
    assert not parser.ended
    parser.feed("You can also")
    assert parser.ended


texts = st.text(alphabet=' \n{}[]"`<>/_,:.\\abjnmetoolcs1é🎉', max_size=40)
values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=20), st.lists, max_leaves=6)
parts = st.one_of(
    texts,
    st.sampled_from([WEATHER, TIMER, f"```json\n{TIMER}\n```", f"<tool_call>{WEATHER}</tool_call>", '{"name": "Joke']),
)


@settings(deadline=None)
@given(st.lists(parts, max_size=5).map("".join), st.data())
def test_the_chunks_in_which_text_arrives_make_no_difference(written: str, data: st.DataObject):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=12)))
    chunks = [written[start:end] for start, end in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    assert parse(chunks) == parse([written])


@settings(deadline=None)
@given(texts)
def test_text_without_a_call_comes_out_as_it_went_in(written: str):
    said, calls = parse(written)
    if not calls and "name" not in written and "tool_call" not in written:
        assert said == written


@settings(deadline=None)
@given(
    st.text(alphabet="abc .,!?é", max_size=30),
    st.sampled_from(NAMES),
    st.dictionaries(st.text(max_size=8), values, max_size=4),
    st.integers(0, 3),
)
def test_any_call_behind_any_speech_is_found(speech: str, name: str, arguments: dict[str, object], indent: int):
    written = json.dumps({"name": name, "arguments": arguments}, indent=indent or None, ensure_ascii=bool(indent % 2))
    said, calls = parse(speech + written)
    assert said == speech
    assert [(called, json.loads(text)) for called, text in calls] == [(name, arguments)]


def test_the_schema_of_a_forced_call_allows_each_tool_with_its_own_arguments():
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    schema = calls_schema([Tool("get_weather", "", parameters), Tool("get_time", "", {})])
    names_and_arguments = [
        (option["properties"]["name"]["const"], option["properties"]["arguments"]) for option in schema["anyOf"]
    ]
    assert names_and_arguments == [("get_weather", parameters), ("get_time", {"type": "object"})]

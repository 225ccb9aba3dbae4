from typing import Any

from speech_to_speech.LLM.answer_reader import AnswerReader
from speech_to_speech.stage_types import TextDelta, Tool, ToolCall

TOOLS = (Tool("get_weather", "", {}), Tool("set_timer", "", {}))


def chunk(content: str | None = None, finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": finish_reason, "delta": {"content": content, **delta}}]}


def structured(index: int, arguments: str, name: str | None = None, call_id: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return chunk(tool_calls=[{"index": index, "id": call_id, "type": "function", "function": function}])


def read(reader: AnswerReader, *chunks: dict[str, Any]) -> list[TextDelta | ToolCall]:
    return [piece for each in chunks for piece in reader.feed(each)] + reader.finish()


def test_text_comes_out_delta_by_delta():
    reader = AnswerReader(())
    assert read(reader, chunk("Hel"), chunk("lo"), chunk(finish_reason="stop")) == [TextDelta("Hel"), TextDelta("lo")]
    assert reader.reason == "stop"


def test_an_answer_cut_off_by_the_token_limit_says_so():
    reader = AnswerReader(())
    read(reader, chunk("Hel"), chunk(finish_reason="length"))
    assert reader.reason == "length"


def test_without_tools_json_is_text():
    written = '{"name": "get_weather", "arguments": {}}'
    assert read(AnswerReader(()), chunk(written)) == [TextDelta(written)]


def test_structured_calls_are_put_together_from_their_pieces():
    reader = AnswerReader(TOOLS)
    pieces = read(
        reader,
        chunk("One moment."),
        structured(0, "", name="get_weather", call_id="a1"),
        structured(0, '{"city": '),
        structured(0, '"Paris"}'),
        structured(1, "{}", name="set_timer", call_id="b2"),
        chunk(finish_reason="tool_calls"),
    )
    assert pieces == [
        TextDelta("One moment."),
        ToolCall("a1", "get_weather", '{"city": "Paris"}'),
        ToolCall("b2", "set_timer", "{}"),
    ]
    assert reader.reason == "tool_calls"


def test_a_structured_call_cut_off_by_the_token_limit_is_left_out():
    reader = AnswerReader(TOOLS)
    assert read(reader, structured(0, '{"ci', name="get_weather"), chunk(finish_reason="length")) == []
    assert reader.reason == "length"


def test_a_call_within_the_text_is_a_call():
    reader = AnswerReader(TOOLS)
    (call,) = read(reader, chunk('{"name": "get_weather", '), chunk('"arguments": {}}'), chunk(finish_reason="stop"))
    assert isinstance(call, ToolCall)
    assert reader.reason == "tool_calls"


def test_reasoning_is_not_part_of_the_answer():
    assert read(AnswerReader(TOOLS), chunk(reasoning_content="The user wants"), chunk("Hi")) == [TextDelta("Hi")]


def test_an_answer_that_only_calls_an_unknown_function_is_noticed():
    unknown = chunk('{"name": "Joke", "arguments": {}}')
    for chunks, expected in [
        ([unknown], True),
        ([structured(0, "{}", name="Joke")], True),
        ([chunk("Listen: "), unknown], False),
        ([chunk('{"name": "get_weather", "arguments": {}}'), unknown], False),
        ([chunk("Hello")], False),
        ([], False),
    ]:
        reader = AnswerReader(TOOLS)
        read(reader, *chunks)
        assert reader.called_only_unknown is expected


def test_chunks_without_choices_are_ignored():
    assert read(AnswerReader(()), {"choices": [], "usage": {}}, {"timings": {}}) == []

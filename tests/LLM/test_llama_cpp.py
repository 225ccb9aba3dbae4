import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from speech_to_speech.arguments_classes.llm_arguments import LLMArguments
from speech_to_speech.errors import AssetError, Cancelled, ContextOverflowError, StageError
from speech_to_speech.LLM.llama_cpp import LlamaCpp
from speech_to_speech.stage_types import (
    ChatMessage,
    GenerateRequest,
    GenerationDone,
    TextDelta,
    Tool,
    ToolCall,
    Usage,
)

SYSTEM = ChatMessage("system", "You are a helpful voice assistant. Answer in one short sentence.")
CLOSING_MARKERS = 6
"""Tokens of SmolLM2 behind a user's text: <|im_end|> \\n <|im_start|> ass istant \\n."""

TOOLS = (
    Tool(
        "get_weather",
        "Current weather of a city",
        {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    ),
    Tool(
        "set_timer",
        "Set a timer",
        {"type": "object", "properties": {"minutes": {"type": "integer"}}, "required": ["minutes"]},
    ),
)


@dataclass(frozen=True)
class Answer:
    text: str
    calls: tuple[ToolCall, ...]
    reason: str
    usage: Usage


def never() -> bool:
    return False


def user(text: str) -> ChatMessage:
    return ChatMessage("user", text)


def assistant(text: str) -> ChatMessage:
    return ChatMessage("assistant", text)


def request(conversation: str, *messages: ChatMessage, **fields: object) -> GenerateRequest:
    return replace(GenerateRequest(token=1, conversation=conversation, messages=messages), **fields)  # type: ignore[arg-type]


def ask(model: LlamaCpp, asked: GenerateRequest, is_cancelled: Callable[[], bool] = never) -> Answer:
    pieces = list(model.generate(asked, is_cancelled))
    done = pieces[-1]
    assert isinstance(done, GenerationDone)
    return Answer(
        text="".join(piece.text for piece in pieces if isinstance(piece, TextDelta)),
        calls=tuple(piece for piece in pieces if isinstance(piece, ToolCall)),
        reason=done.reason,
        usage=done.usage,
    )


def prefill(model: LlamaCpp, conversation: str, *messages: ChatMessage) -> Usage:
    """Read the prompt; nothing may be said."""
    pieces = list(model.generate(request(conversation, *messages, prefill_only=True), never))
    assert [type(piece) for piece in pieces] == [GenerationDone]
    assert isinstance(pieces[0], GenerationDone)
    assert pieces[0].usage.output_tokens == 0
    return pieces[0].usage


# --- answers ------------------------------------------------------------------------------------------------------


def test_a_question_is_answered_in_deltas(qwen: LlamaCpp):
    pieces = list(qwen.generate(request("capital", SYSTEM, user("What is the capital of France?")), never))
    qwen.release("capital")
    deltas = [piece.text for piece in pieces if isinstance(piece, TextDelta)]
    assert len(deltas) > 3
    assert "Paris" in "".join(deltas)
    assert isinstance(pieces[-1], GenerationDone)
    assert pieces[-1].reason == "stop"


def test_an_answer_ends_at_the_limit_of_the_request(smollm2: LlamaCpp):
    answer = ask(smollm2, request("limit", SYSTEM, user("Count to twenty."), max_tokens=5))
    assert answer.reason == "length"
    assert answer.usage.output_tokens == 5


def test_without_a_limit_of_the_request_the_answer_ends_at_the_limit_of_the_arguments():
    arguments = LLMArguments(model="smollm2", context_tokens=512, slots=1, max_tokens=3, cache_ram_mib=0)
    model = LlamaCpp.load(arguments, threads=2)
    answer = ask(model, request("limit", SYSTEM, user("Count to twenty.")))
    model.close()
    assert (answer.reason, answer.usage.output_tokens) == ("length", 3)


def test_an_answer_does_not_go_on_with_the_assistants_last_message(smollm2: LlamaCpp):
    answer = ask(smollm2, request("again", SYSTEM, user("Say something."), assistant("The sky is"), max_tokens=4))
    prompt = prefill(smollm2, "again", SYSTEM, user("Say something."), assistant("The sky is"), user(""))
    assert answer.usage.input_tokens < prompt.input_tokens
    assert not answer.text.startswith(" ")


def test_a_model_that_does_not_exist_is_named():
    with pytest.raises(AssetError, match="nowhere"):
        LlamaCpp.load(LLMArguments(model="/nowhere/model.gguf"), threads=1)


# --- slots and cache ----------------------------------------------------------------------------------------------


def test_as_many_conversations_as_slots_keep_their_history_in_the_cache(smollm2: LlamaCpp):
    histories = {
        name: [SYSTEM, user(f"My name is {name} and I like {fruit}s. " * 3)]
        for name, fruit in [("Anna", "apple"), ("Bert", "banana")]
    }
    read = dict.fromkeys(histories, 0)
    for _ in range(3):
        for name, history in histories.items():
            answer = ask(smollm2, request(name, *history, max_tokens=6))
            assert answer.usage.cached_tokens >= read[name]
            read[name] = answer.usage.input_tokens
            history += [assistant(answer.text), user("Tell me more.")]
    for name in histories:
        smollm2.release(name)
    assert min(read.values()) > 70


def test_with_more_conversations_than_slots_every_answer_belongs_to_its_question(qwen: LlamaCpp):
    countries = {"France": ("Paris", "French"), "Italy": ("Rome", "Italian"), "Japan": ("Tokyo", "Japanese")}
    answers: dict[str, list[str]] = {}

    def converse(country: str) -> None:
        history = [SYSTEM]
        for question in (f"What is the capital of {country}?", "Which language do people speak there?"):
            history.append(user(question))
            history.append(assistant(ask(qwen, request(country, *history)).text))
        answers[country] = [message.text for message in history if message.role == "assistant"]
        qwen.release(country)

    threads = [threading.Thread(target=converse, args=(country,)) for country in countries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for country, (capital, language) in countries.items():
        assert capital in answers[country][0]
        assert language in answers[country][1]


def test_waiting_for_a_busy_slot_ends_with_a_cancel(smollm2: LlamaCpp):
    running = [
        smollm2.generate(request(name, SYSTEM, user("Count to a hundred."), max_tokens=100), never) for name in "xy"
    ]
    for generation in running:
        next(generation)
    with pytest.raises(Cancelled):
        ask(smollm2, request("z", SYSTEM, user("Hello")), is_cancelled=lambda: True)
    for generation in running:
        generation.close()  # type: ignore[attr-defined]
    assert ask(smollm2, request("z", SYSTEM, user("Hello"), max_tokens=2)).text


# --- prefill ------------------------------------------------------------------------------------------------------


def test_a_prefilled_prompt_is_read_only_once(smollm2: LlamaCpp):
    messages = (SYSTEM, user("What do bees do in the winter, when there are no flowers at all?"))
    assert prefill(smollm2, "bees", *messages).input_tokens > 40
    usage = ask(smollm2, request("bees", *messages, max_tokens=2)).usage
    smollm2.release("bees")
    assert usage.cached_tokens == usage.input_tokens - 1  # the last token is always computed, for its logits


def test_a_prefilled_beginning_of_a_question_serves_the_whole_question(smollm2: LlamaCpp):
    beginning = prefill(smollm2, "rain", SYSTEM, user("Why does it rain more often in the mountains"))
    whole = (SYSTEM, user("Why does it rain more often in the mountains than by the sea in the summer?"))
    usage = ask(smollm2, request("rain", *whole, max_tokens=2)).usage
    smollm2.release("rain")
    assert usage.cached_tokens >= beginning.input_tokens - CLOSING_MARKERS


@pytest.mark.parametrize("history", [(), (user("Hello"), assistant("Hi, how can I help you today?"))])
def test_instructions_and_history_can_be_prefilled_before_the_next_question(
    smollm2: LlamaCpp, history: tuple[ChatMessage, ...]
):
    read = prefill(smollm2, "early", SYSTEM, *history)
    usage = ask(smollm2, request("early", SYSTEM, *history, user("What is rain?"), max_tokens=2)).usage
    smollm2.release("early")
    assert usage.cached_tokens >= read.input_tokens - CLOSING_MARKERS


# --- cancel -------------------------------------------------------------------------------------------------------


def test_a_cancel_ends_a_prefill_and_what_was_read_so_far_is_kept(smollm2: LlamaCpp):
    messages = (SYSTEM, user(" ".join(f"plum{index}" for index in range(90))))
    looks = iter(range(4))  # about one look for each batch of 16 tokens
    with pytest.raises(Cancelled):
        list(smollm2.generate(request("plums", *messages, prefill_only=True), lambda: next(looks, None) is None))
    usage = prefill(smollm2, "plums", *messages)
    smollm2.release("plums")
    assert usage.input_tokens > 200
    assert usage.cached_tokens < 150


def test_a_cancel_ends_an_answer_and_the_next_one_is_served(smollm2: LlamaCpp):
    asked = request("count", SYSTEM, user("Count from one to a hundred."), max_tokens=200)
    generation = smollm2.generate(asked, lambda: len(pieces) >= 3)
    pieces: list[object] = []
    with pytest.raises(Cancelled):
        for piece in generation:
            pieces.append(piece)
    assert len(pieces) == 3
    assert ask(smollm2, replace(asked, max_tokens=2)).usage.output_tokens == 2
    smollm2.release("count")


def test_a_consumer_that_leaves_frees_the_slot(smollm2: LlamaCpp):
    for _ in range(4):  # twice as often as there are slots
        generation = smollm2.generate(request("leaver", SYSTEM, user("Count to a hundred."), max_tokens=200), never)
        next(generation)
        generation.close()  # type: ignore[attr-defined]
    answer = ask(smollm2, request("leaver", SYSTEM, user("Count to a hundred."), max_tokens=2))
    assert answer.usage.output_tokens == 2
    smollm2.release("leaver")


# --- long conversations -------------------------------------------------------------------------------------------


def test_a_conversation_of_a_hundred_turns_keeps_working(smollm2: LlamaCpp):
    """The first seventy turns are given as history, to save time; thirty are held."""
    history = [SYSTEM]
    for turn in range(70):
        history += [user(f"Number {turn}?"), assistant(f"{turn}.")]
    read_again = 0
    for turn in range(70, 100):
        history.append(user(f"Number {turn}?"))
        answer = ask(smollm2, request("long", *history, max_tokens=2))
        assert 1 <= answer.usage.output_tokens <= 2
        assert answer.usage.input_tokens <= 512 - 2
        read_again += answer.usage.input_tokens - answer.usage.cached_tokens > 60
        history.append(assistant(answer.text))
    smollm2.release("long")
    # A turn takes about 18 tokens and a drop frees 40 % of 510, some 11 turns: after the first prompt the history is
    # read again two or three times in thirty turns, and not at each of them.
    assert 2 <= read_again <= 5


def test_a_long_history_that_arrives_at_once_is_cut_to_fit(smollm2: LlamaCpp):
    history = [message for turn in range(80) for message in (user(f"Question {turn}?"), assistant(f"Answer {turn}."))]
    answer = ask(smollm2, request("restored", SYSTEM, *history, user("And now?"), max_tokens=3))
    smollm2.release("restored")
    assert answer.text
    assert 200 < answer.usage.input_tokens < 512


def test_a_message_longer_than_the_context_is_an_error_that_names_the_remedy(smollm2: LlamaCpp):
    for words in (450, 2000):
        asked = request("essay", SYSTEM, user("Hello"), assistant("Hi"), user("word " * words))
        with pytest.raises(ContextOverflowError, match=r"512.*--llm_context_tokens"):
            ask(smollm2, asked)
    assert ask(smollm2, request("essay", SYSTEM, user("Hello"), max_tokens=2)).text
    smollm2.release("essay")


# --- tools --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [
        ("What is the weather in Paris?", "get_weather", {"city": "Paris"}),
        ("Set a timer for five minutes.", "set_timer", {"minutes": 5}),
    ],
)
def test_a_tool_is_called_and_nothing_is_spoken(qwen: LlamaCpp, question: str, name: str, arguments: object):
    answer = ask(qwen, request("tools", SYSTEM, user(question), tools=TOOLS))
    assert answer.text.strip() == ""
    assert [(call.name, json.loads(call.arguments)) for call in answer.calls] == [(name, arguments)]
    assert answer.reason == "tool_calls"


def test_a_call_of_a_function_that_does_not_exist_becomes_an_answer_in_words(qwen: LlamaCpp):
    answer = ask(qwen, request("tools", SYSTEM, user("Tell me a joke."), tools=TOOLS, max_tokens=40))
    assert answer.calls == ()
    assert len(answer.text.split()) > 3
    assert "{" not in answer.text


def test_a_named_tool_is_called_with_valid_arguments_whatever_was_asked(qwen: LlamaCpp):
    asked = request("tools", SYSTEM, user("Hello, how are you?"), tools=TOOLS, tool_choice="set_timer")
    (call,) = ask(qwen, asked).calls
    assert call.name == "set_timer"
    assert isinstance(json.loads(call.arguments)["minutes"], int)


def test_a_required_call_is_made_even_by_a_model_that_knows_no_tools(smollm2: LlamaCpp):
    answer = ask(smollm2, request("forced", SYSTEM, user("Good morning"), tools=TOOLS, tool_choice="required"))
    smollm2.release("forced")
    assert answer.text == ""
    assert [call.name in ("get_weather", "set_timer") for call in answer.calls] == [True]


def test_no_tool_is_called_when_none_is_allowed(qwen: LlamaCpp):
    asked = request("tools", SYSTEM, user("Set a timer for five minutes."), tools=TOOLS, tool_choice="none")
    answer = ask(qwen, replace(asked, max_tokens=20))
    assert answer.calls == ()
    assert answer.text
    assert answer.reason != "tool_calls"


def test_the_result_of_a_call_is_part_of_the_prompt(qwen: LlamaCpp):
    call = ToolCall("call_1", "get_weather", '{"city": "Oslo"}')
    messages = (SYSTEM, user("What is the weather in Oslo?"), ChatMessage("assistant", "", tool_calls=(call,)))
    without = prefill(qwen, "tools", *messages, ChatMessage("tool", "", call_id="call_1"))
    result = ChatMessage("tool", "snow, minus nine degrees", call_id="call_1")
    answer = ask(qwen, request("tools", *messages, result, max_tokens=30))
    assert answer.usage.input_tokens > without.input_tokens
    assert "snow" in answer.text.lower()


def test_a_tool_choice_without_its_tool_is_an_error(smollm2: LlamaCpp):
    with pytest.raises(StageError, match="get_time"):
        ask(smollm2, request("odd", SYSTEM, user("Hi"), tools=TOOLS, tool_choice="get_time"))
    assert ask(smollm2, request("odd", SYSTEM, user("Hi"), max_tokens=1)).usage.output_tokens == 1

from itertools import pairwise

import pytest

from speech_to_speech.errors import ContextOverflowError
from speech_to_speech.LLM.context_window import ContextWindow, turns_to_drop
from speech_to_speech.stage_types import ChatMessage, Tool, ToolCall

SYSTEM = ChatMessage("system", "Answer briefly.")


def turn(index: int, size: int = 10) -> list[ChatMessage]:
    return [ChatMessage("user", f"question {index} " * size), ChatMessage("assistant", f"answer {index} " * size)]


def conversation(turns: int) -> list[ChatMessage]:
    return [SYSTEM, *(message for index in range(turns) for message in turn(index))]


def tokens(messages: list[ChatMessage]) -> int:
    """A tokenizer with one token for a word and four for a message's markers."""
    return sum(4 + len(message.text.split()) for message in messages)


def fit(window: ContextWindow, messages: list[ChatMessage], max_tokens: int = 50) -> list[ChatMessage]:
    while tokens(visible := window.visible(messages)) > window.prompt_limit(max_tokens):
        window.drop(messages, (), tokens(visible), max_tokens)
    return visible


def test_a_conversation_that_fits_is_shown_whole():
    assert fit(ContextWindow(1000), conversation(3)) == conversation(3)


def test_the_room_of_the_answer_is_kept_free_up_to_a_quarter_of_the_context():
    window = ContextWindow(1000)
    assert window.prompt_limit(50) == 950
    assert window.prompt_limit(4000) == 750


def test_the_oldest_whole_turns_drop_and_the_instructions_stay():
    messages = conversation(30)
    visible = fit(ContextWindow(500), messages)
    assert visible[0] == SYSTEM
    assert visible[1].role == "user"
    assert visible[1:] == messages[-len(visible) + 1 :]


def test_many_turns_drop_at_once_so_that_the_beginning_then_stays_the_same():
    window = ContextWindow(1000)
    beginnings = [fit(window, conversation(turns))[1].text for turns in range(1, 101)]
    # A turn takes 48 tokens, the limit is 950: it is reached with turn 20; dropping to 60 % leaves 11 or 12 turns,
    # so about 8 turns pass until the next drop: 11 different beginnings in 100 turns.
    changes = sum(before != after for before, after in pairwise(beginnings))
    assert 8 <= changes <= 13


def test_after_a_drop_at_most_about_two_thirds_of_the_limit_are_used():
    window = ContextWindow(1000)
    visible = fit(window, conversation(40))
    assert 0.4 * 950 < tokens(visible) < 0.67 * 950


def test_a_call_and_its_result_stay_with_their_question():
    call = ToolCall("call_1", "get_time", "{}")
    with_call = [
        ChatMessage("user", "what time is it " * 20),
        ChatMessage("assistant", "", tool_calls=(call,)),
        ChatMessage("tool", "noon", call_id="call_1"),
        ChatMessage("assistant", "It is noon."),
    ]
    messages = [SYSTEM, *with_call, *with_call, *turn(9)]
    visible = fit(ContextWindow(200), messages)
    assert visible[1:] in ([*with_call, *turn(9)], turn(9))


def test_a_greeting_before_the_first_question_drops_like_a_turn():
    messages = [SYSTEM, ChatMessage("assistant", "hello there " * 40), *turn(1, 20)]
    assert fit(ContextWindow(150), messages) == [SYSTEM, *turn(1, 20)]


def test_a_history_that_was_edited_before_the_window_is_looked_at_anew():
    window = ContextWindow(500)
    fit(window, conversation(30))
    shortened = [SYSTEM, *turn(7), *turn(29)]
    assert window.visible(shortened) == shortened


def test_a_newest_turn_that_is_too_long_is_an_error_that_names_limit_and_remedy():
    window = ContextWindow(100)
    messages = [*conversation(3), ChatMessage("user", "word " * 200)]
    with pytest.raises(ContextOverflowError, match=r"take 210 tokens.*room for 75.*--llm_context_tokens"):
        fit(window, messages)


def test_instructions_that_fill_the_context_are_an_error():
    with pytest.raises(ContextOverflowError, match="instructions"):
        fit(ContextWindow(100), [ChatMessage("system", "rule " * 120), *turn(1, 1), *turn(2, 1)])


def test_tools_count_as_a_part_that_stays():
    tool = Tool("find", "search " * 40, {"type": "object"})
    sparse, crowded = ContextWindow(300), ContextWindow(300)
    sparse.drop(conversation(8), (), 400, 50)
    crowded.drop(conversation(8), (tool,), 400, 50)
    assert len(crowded.visible(conversation(8))) <= len(sparse.visible(conversation(8)))


@pytest.mark.parametrize(
    ("sizes", "fixed", "prompt", "target", "expected"),
    [
        ([10, 10, 10, 10], 0, 40, 25, 2),  # 40 → 30 → 20
        ([10, 10, 10, 10], 0, 80, 45, 2),  # two tokens a character: 80 → 60 → 40
        ([10, 10, 10, 10], 0, 40, 40, 1),  # at least one
        ([10, 10, 10, 10], 100, 140, 10, 3),  # never the newest
        ([30, 10, 10, 10], 40, 100, 75, 1),  # 100 → 70
        ([5, 5], 0, 10, 1, 1),
    ],
)
def test_how_many_turns_drop(sizes: list[int], fixed: int, prompt: int, target: int, expected: int):
    assert turns_to_drop(sizes, fixed=fixed, prompt_tokens=prompt, target_tokens=target) == expected

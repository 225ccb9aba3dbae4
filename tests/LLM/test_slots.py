import threading
from collections.abc import Callable

import pytest

from speech_to_speech.errors import Cancelled
from speech_to_speech.LLM.slots import SlotPool


def never() -> bool:
    return False


def at_once() -> bool:
    return True


def use(pool: SlotPool, conversation: str) -> int:
    slot = pool.acquire(conversation, never)
    pool.free(slot)
    return slot


def in_thread(action: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_as_many_conversations_as_slots_keep_their_slots():
    pool = SlotPool(3)
    first_round = [use(pool, name) for name in "abc"]
    assert sorted(first_round) == [0, 1, 2]
    assert [use(pool, name) for name in "cab"] == [first_round[2], first_round[0], first_round[1]]


def test_the_slot_idle_the_longest_is_given_away():
    pool = SlotPool(2)
    slot_a, slot_b = use(pool, "a"), use(pool, "b")
    use(pool, "a")
    assert use(pool, "c") == slot_b
    assert use(pool, "a") == slot_a


def test_a_busy_slot_is_not_given_away():
    pool = SlotPool(2)
    slot_a = pool.acquire("a", never)
    slot_b = use(pool, "b")
    assert use(pool, "c") == slot_b
    assert use(pool, "d") == slot_b
    pool.free(slot_a)
    assert use(pool, "a") == slot_a


def test_waiting_for_a_slot_ends_with_a_cancel():
    pool = SlotPool(1)
    pool.acquire("a", never)
    with pytest.raises(Cancelled):
        pool.acquire("b", at_once)
    with pytest.raises(Cancelled):
        pool.acquire("a", at_once)


def test_a_cancelled_waiter_leaves_the_queue():
    pool = SlotPool(1)
    slot = pool.acquire("a", never)
    with pytest.raises(Cancelled):
        pool.acquire("b", at_once)
    pool.free(slot)
    assert use(pool, "c") == slot


def test_a_waiting_conversation_gets_the_slot_that_becomes_free():
    pool = SlotPool(1)
    slot = pool.acquire("a", never)
    got: list[int] = []
    waiter = in_thread(lambda: got.append(pool.acquire("b", never)))
    pool.free(slot)
    waiter.join()
    assert got == [slot]


def test_a_waiting_conversation_comes_before_the_owner_that_asks_again():
    pool = SlotPool(1)
    order: list[str] = []
    queued = threading.Event()

    def is_cancelled() -> bool:
        queued.set()
        return False

    def take(conversation: str) -> None:
        slot = pool.acquire(conversation, is_cancelled)
        order.append(conversation)
        pool.free(slot)

    slot = pool.acquire("a", never)
    waiter = in_thread(lambda: take("b"))
    queued.wait()
    pool.free(slot)
    take("a")
    waiter.join()
    assert order == ["b", "a"]


def test_two_requests_of_one_conversation_share_one_slot_one_after_the_other():
    pool = SlotPool(2)
    slot = pool.acquire("a", never)
    with pytest.raises(Cancelled):
        pool.acquire("a", at_once)
    pool.free(slot)
    assert use(pool, "a") == slot


def test_the_slot_of_an_ended_conversation_goes_first():
    pool = SlotPool(3)
    use(pool, "a")
    slot_b = use(pool, "b")
    use(pool, "c")
    pool.forget("b")
    assert use(pool, "d") == slot_b


def test_a_conversation_that_ends_while_it_is_served_frees_its_slot_afterwards():
    pool = SlotPool(2)
    use(pool, "a")
    slot_b = pool.acquire("b", never)
    pool.forget("b")
    pool.free(slot_b)
    assert use(pool, "c") == slot_b


def test_forgetting_an_unknown_conversation_is_ignored():
    pool = SlotPool(1)
    pool.forget("nobody")
    assert use(pool, "somebody") == 0


def test_many_conversations_on_few_slots_never_share_a_busy_slot():
    pool = SlotPool(3)
    holders: dict[int, str] = {}
    clashes: list[tuple[str, str]] = []

    def talk(conversation: str) -> None:
        for _ in range(50):
            slot = pool.acquire(conversation, never)
            if slot in holders:
                clashes.append((holders[slot], conversation))
            holders[slot] = conversation
            del holders[slot]
            pool.free(slot)

    threads = [in_thread(lambda name=f"conversation {index}": talk(name)) for index in range(8)]
    for thread in threads:
        thread.join()
    assert clashes == []

"""Which KV-cache slot serves which conversation."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from speech_to_speech.errors import Cancelled
from speech_to_speech.stage_types import IsCancelled

_CANCEL_POLL_S = 0.02


@dataclass(slots=True)
class _Slot:
    index: int
    owner: str | None = None
    busy: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    conversation: str


class SlotPool:
    """A fixed number of slots, each kept for the conversation that used it last. Thread-safe.

    A conversation gets its own slot back as long as nobody else needed it; otherwise the one that has been idle the
    longest. A busy slot is never taken away. Who has to wait is served in the order of arrival.
    """

    def __init__(self, count: int) -> None:
        self._idle_longest_first = [_Slot(index) for index in range(count)]
        self._waiters: list[_Waiter] = []
        self._changed = threading.Condition()

    def acquire(self, conversation: str, is_cancelled: IsCancelled) -> int:
        """Make a slot busy for `conversation` and return its index; waits for one. Raises `Cancelled`."""
        waiter = _Waiter(conversation)
        with self._changed:
            self._waiters.append(waiter)
            try:
                while (slot := self._slot_for(waiter)) is None:
                    if is_cancelled():
                        raise Cancelled("cancelled while waiting for a slot")
                    self._changed.wait(_CANCEL_POLL_S)
            finally:
                self._waiters.remove(waiter)
                self._changed.notify_all()
            slot.busy, slot.owner = True, conversation
            return slot.index

    def free(self, index: int) -> None:
        """The slot's work has ended; its cache stays with its conversation until somebody else needs the slot."""
        with self._changed:
            slot = next(slot for slot in self._idle_longest_first if slot.index == index)
            slot.busy = False
            self._idle_longest_first.remove(slot)
            self._idle_longest_first.insert(len(self._idle_longest_first) if slot.owner is not None else 0, slot)
            self._changed.notify_all()

    def forget(self, conversation: str) -> None:
        """The conversation has ended: its slot is the next to be given away, once it is idle."""
        with self._changed:
            if (slot := self._owned_by(conversation)) is None:
                return
            slot.owner = None
            self._idle_longest_first.remove(slot)
            self._idle_longest_first.insert(0, slot)
            self._changed.notify_all()

    def _owned_by(self, conversation: str) -> _Slot | None:
        return next((slot for slot in self._idle_longest_first if slot.owner == conversation), None)

    def _slot_for(self, waiter: _Waiter) -> _Slot | None:
        """The slot `waiter` may take now, after everyone who came earlier has had the choice."""
        idle = [slot for slot in self._idle_longest_first if not slot.busy]
        for earlier in self._waiters:
            own = self._owned_by(earlier.conversation)
            choice = (own if own in idle else None) if own is not None else next(iter(idle), None)
            if earlier is waiter:
                return choice
            if earlier.conversation == waiter.conversation:
                return None
            if choice is not None:
                idle.remove(choice)
        return None

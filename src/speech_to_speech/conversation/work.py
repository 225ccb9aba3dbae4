"""Requests to the stages, and the one place where stale results are recognised."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from speech_to_speech.stage_types import CancelRequest

if TYPE_CHECKING:
    from speech_to_speech.conversation.events import Output


class Work:
    """The outputs of the turn loop in their order, and the revision tokens of the work going on.

    Each piece of work carries one token. Cancelling forgets it; a result whose token is not alive is stale.
    """

    def __init__(self, new_id: Callable[[str], str]) -> None:
        self.new_id = new_id
        self._outputs: list[Output] = []
        self._alive: set[int] = set()
        self._next_token = 1

    def emit(self, output: Output) -> None:
        """Append one event or request to what the caller will get."""
        self._outputs.append(output)

    def take(self) -> list[Output]:
        """All outputs since the last call, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def begin(self) -> int:
        """A token for new work."""
        token = self._next_token
        self._next_token += 1
        self._alive.add(token)
        return token

    def end(self, token: int) -> None:
        """The work has come to its own end."""
        self._alive.discard(token)

    def cancel(self, token: int | None) -> None:
        """The work is no longer wanted: its results are stale from here on."""
        if token is not None and token in self._alive:
            self._alive.remove(token)
            self.emit(CancelRequest(token))

    def cancel_all(self) -> None:
        """The session is over."""
        for token in sorted(self._alive):
            self.cancel(token)

    def is_stale(self, token: int) -> bool:
        """True for results nobody waits for."""
        return token not in self._alive

"""What the user reads while talking."""

from __future__ import annotations

from typing import TextIO


class Screen:
    """Writes both sides' words as they come, each utterance on a line of its own, and remarks between them."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._open = ""
        """The item whose line the cursor is on; "" at the start of a line."""
        self._written: dict[str, str] = {}
        """What has been written of items that are not complete."""

    def words(self, speaker: str, item_id: str, delta: str) -> None:
        """The next words of an utterance."""
        if not delta:
            return
        if self._open != item_id:
            self.end_line()
            self._write(f"{speaker}: ")
            delta = delta.lstrip()
        self._open = item_id
        self._written[item_id] = self._written.get(item_id, "") + delta
        self._write(delta)

    def utterance(self, speaker: str, item_id: str, text: str) -> None:
        """An utterance is complete: write what is missing of it, or all of it if it came out differently."""
        text = text.strip()
        written = self._written.pop(item_id, "")
        if self._open == item_id and text.startswith(written):
            self._write(text[len(written) :])
        elif text and text != written.strip():
            self.end_line()
            self._write(f"{speaker}: {text}")
            self._open = item_id
        if self._open == item_id:
            self.end_line()

    def remark(self, text: str) -> None:
        """Something about the conversation, on lines of its own."""
        self.end_line()
        self._write(f"{text}\n")

    def end_line(self) -> None:
        """Put the cursor at the start of a line."""
        if self._open:
            self._write("\n")
            self._open = ""

    def _write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()

"""Letting the language model read what is known before it is asked, so that only the last words are left to read."""

from __future__ import annotations

from speech_to_speech.conversation.reply import ReplySettings
from speech_to_speech.conversation.user_turn import UserTurn
from speech_to_speech.conversation.work import Work
from speech_to_speech.stage_types import ChatMessage, GenerateRequest, Transcript

EVERY_WORDS = 2
"""New words of the user before the model reads them. A word that changes after all costs its own tokens only."""


class ReadAhead:
    """At most one read-ahead of a conversation is under way: a newer one replaces it."""

    def __init__(self, work: Work, conversation: str) -> None:
        self._work = work
        self._conversation = conversation
        self._token: int | None = None

    def user_said(
        self, turn: UserTurn, transcript: Transcript, history: tuple[ChatMessage, ...], settings: ReplySettings
    ) -> None:
        """Read a partial transcript: all of it when it may be the whole question, else without its last word, which
        its sound may still change."""
        words = transcript.text.split()
        if not transcript.reads_finished:
            words = words[:-1]
        if len(words) - turn.words_read >= EVERY_WORDS:
            turn.words_read = len(words)
            self.request((*history, ChatMessage("user", " ".join(words))), settings)

    def request(self, messages: tuple[ChatMessage, ...], settings: ReplySettings) -> None:
        """Read `messages`; nothing to read is no work."""
        if not messages:
            return
        self.cancel()
        self._token = self._work.begin()
        self._work.emit(
            GenerateRequest(
                self._token,
                self._conversation,
                messages,
                tools=settings.tools,
                tool_choice=settings.tool_choice,
                prefill_only=True,
                speculative=True,
            )
        )

    def cancel(self) -> None:
        """Something more urgent is asked of the model."""
        self._work.cancel(self._token)
        self._token = None

    def ended(self, token: int) -> bool:
        """True when `token` is the read-ahead's, which is then over."""
        if token != self._token:
            return False
        self._work.end(token)
        self._token = None
        return True

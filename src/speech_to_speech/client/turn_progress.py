"""Follows a conversation by the server's events: is an answer owed, on its way, complete, or failed?"""

from __future__ import annotations

from speech_to_speech.client.realtime_client import Event

_TRANSCRIPTION = "conversation.item.input_audio_transcription"
_CONTENT = ("response.output_audio.delta", "response.output_audio_transcript.delta", "response.output_text.delta")


class TurnProgress:
    """Where the conversation stands."""

    def __init__(self) -> None:
        self.speech_heard = False
        self.transcript = ""
        """What the server understood last."""
        self.error = ""
        """The newest error the server reported."""
        self._reply_owed = False
        self._replying = False
        self._reply_has_content = False
        self._answered: bool | None = None
        """How the newest turn that came to an end did so; None before the first."""

    @property
    def answered(self) -> bool:
        """True if the newest turn was answered, in sound or text."""
        return self._answered is True

    @property
    def is_settled(self) -> bool:
        """True if at least one turn came to an end and nothing more is on its way."""
        return self._answered is not None and not self._reply_owed and not self._replying

    def receive(self, event: Event) -> None:
        """The server's next event."""
        kind = event["type"]
        if kind == "input_audio_buffer.speech_started":
            self.speech_heard = self._reply_owed = True
        elif kind == f"{_TRANSCRIPTION}.completed":
            self._transcribed(event["transcript"])
        elif kind == f"{_TRANSCRIPTION}.failed":
            self.error = event["error"]["message"]
            self._reply_owed, self._answered = False, False
        elif kind == "error":
            self.error = event["error"]["message"]
        elif kind == "response.created":
            self._reply_owed, self._replying, self._reply_has_content = False, True, False
        elif kind in _CONTENT:
            self._reply_has_content = True
        elif kind == "response.done":
            self._done(event["response"])

    def _transcribed(self, transcript: str) -> None:
        self.transcript = transcript
        if not transcript:
            self._reply_owed = False  # nothing was said: nothing will be answered

    def _done(self, response: Event) -> None:
        self._replying = False
        details = response.get("status_details") or {}
        if response["status"] == "failed":
            self.error = (details.get("error") or {}).get("message") or "the response failed"
        self._answered = self._reply_has_content and response["status"] != "failed"

"""A spoken conversation with a server: carries audio both ways and shows what is said."""

from __future__ import annotations

import asyncio

from speech_to_speech.client.assistant_speech import AssistantSpeech
from speech_to_speech.client.audio_device import BLOCK_MS, AudioDevice, Block
from speech_to_speech.client.realtime_client import Event, RealtimeClient
from speech_to_speech.client.recording import Recording
from speech_to_speech.client.screen import Screen
from speech_to_speech.client.turn_progress import TurnProgress
from speech_to_speech.client.waterfall import latency, waterfall

SETTLING_MS = 500
"""How long after the input's end the conversation stays open at least: the server needs about 100 ms to say that it
hears speech."""

_TRANSCRIPTION = "conversation.item.input_audio_transcription"
_WORDS = {
    f"{_TRANSCRIPTION}.delta": "you",
    "response.output_audio_transcript.delta": "assistant",
    "response.output_text.delta": "assistant",
}
_UTTERANCES = {
    f"{_TRANSCRIPTION}.completed": ("you", "transcript"),
    "response.output_audio_transcript.done": ("assistant", "transcript"),
    "response.output_text.done": ("assistant", "text"),
}


class Dialogue:
    """One conversation, from the first block of the input to its end."""

    def __init__(
        self,
        client: RealtimeClient,
        device: AudioDevice,
        screen: Screen,
        recording: Recording,
        *,
        instructions: str | None = None,
        timeout_s: float = 60.0,
        show_waterfall: bool = False,
    ) -> None:
        """`timeout_s`: how long an answer may be waited for after the input's end, while nothing happens."""
        self._client = client
        self._device = device
        self._screen = screen
        self._recording = recording
        self._instructions = instructions
        self._timeout_s = timeout_s
        self._show_waterfall = show_waterfall
        self._speech = AssistantSpeech(device)
        self._progress = TurnProgress()
        self._elapsed_ms = 0
        self._quiet_ms = 0
        self._turn_ended_ms: int | None = None
        """When the server reported the end of a turn that does not sound answered yet."""
        self._response_time_ms: int | None = None

    async def run(self) -> str:
        """Talk until the input has ended and is answered, no answer comes, or the server hangs up.

        Returns "", or one line that says why there is no answer.
        """
        await self._client.send(session_update(self._instructions))
        reader = asyncio.create_task(self._read())
        try:
            return await self._exchange_audio(reader)
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            self._screen.end_line()

    async def _exchange_audio(self, reader: asyncio.Task[None]) -> str:
        async for block in self._device.blocks():
            self._elapsed_ms += BLOCK_MS
            self._recording.add(block.played, inside_reply=self._speech.is_playing)
            if reader.done():
                reader.result()
                return self._progress.error or self._client.closing
            if self._is_over():
                return "" if self._progress.answered else self._progress.error or "the response was empty"
            if self._is_too_quiet(block):
                return "" if self._progress.answered else self._no_reply()
            await self._client.send_audio(block.captured)
        return ""

    def _is_over(self) -> bool:
        ended_ms = self._device.input_ended_ms
        return (
            ended_ms is not None
            and ended_ms >= SETTLING_MS
            and self._progress.is_settled
            and not self._speech.is_playing
        )

    def _is_too_quiet(self, block: Block) -> bool:
        waiting = bool(self._device.input_ended_ms) and not any(block.played)
        self._quiet_ms = self._quiet_ms + BLOCK_MS if waiting else 0
        return self._quiet_ms > self._timeout_s * 1000

    def _no_reply(self) -> str:
        if self._progress.error:
            return self._progress.error
        waited = f"no reply within {self._timeout_s:g} s"
        if not self._progress.speech_heard:
            return f"{waited}: the server heard no speech"
        if self._progress.transcript:
            return f"{waited} to: {self._progress.transcript.strip()}"
        return waited

    async def _read(self) -> None:
        async for event in self._client.events():
            self._quiet_ms = 0
            self._progress.receive(event)
            self._show(event)
            truncate = self._play(event)
            if truncate is not None:
                self._screen.remark(f"  (interrupted after {truncate['audio_end_ms'] / 1000:.1f} s)")
                await self._client.send(truncate)

    def _play(self, event: Event) -> Event | None:
        """Returns the `conversation.item.truncate` to send, if the assistant was cut off."""
        kind = event["type"]
        if kind == "response.output_audio.delta":
            self._speech.receive(event)
            if self._turn_ended_ms is not None:
                self._response_time_ms = self._elapsed_ms - self._turn_ended_ms
                self._turn_ended_ms = None
        elif kind == "input_audio_buffer.speech_stopped":
            self._turn_ended_ms = self._elapsed_ms
        elif kind == "input_audio_buffer.speech_started":
            return self._speech.interrupt()
        elif kind == "response.done":
            response = event["response"]
            return self._speech.ended(response["id"], cancelled=response["status"] == "cancelled")
        return None

    def _show(self, event: Event) -> None:
        kind = event["type"]
        if kind in _WORDS:
            self._screen.words(_WORDS[kind], event["item_id"], event.get("delta") or "")
        elif kind in _UTTERANCES:
            speaker, field = _UTTERANCES[kind]
            self._screen.utterance(speaker, event["item_id"], event[field])
        elif kind == "error":
            self._screen.remark(f"server error: {event['error']['message']}")
        elif kind == "response.done":
            self._show_timing(event["response"].get("timeline") or {})

    def _show_timing(self, timeline: Event) -> None:
        """The server's own record, or without one what can be told from here."""
        if self._show_waterfall and (lines := waterfall(timeline)):
            self._screen.remark(f"\n{lines}\n")
        elif line := latency(timeline):
            self._screen.remark(f"  {line}")
        elif self._response_time_ms is not None:
            self._screen.remark(f"  {self._response_time_ms} ms from the end of the turn to the first audio")
        self._response_time_ms = None


def session_update(instructions: str | None) -> Event:
    """Asks for transcripts of the user's speech; everything else stays as the server has it."""
    session: Event = {"type": "realtime", "audio": {"input": {"transcription": {"model": "whisper-1"}}}}
    if instructions is not None:
        session["instructions"] = instructions
    return {"type": "session.update", "session": session}

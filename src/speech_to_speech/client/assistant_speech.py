"""The assistant's voice on its way through the speaker: what of which item has been heard."""

from __future__ import annotations

import base64

from speech_to_speech.client.audio_device import RATE, AudioDevice
from speech_to_speech.client.realtime_client import Event


class AssistantSpeech:
    """Plays the audio of replies; stops and tells what was heard when the user takes over."""

    def __init__(self, device: AudioDevice) -> None:
        self._device = device
        self._item = ""
        self._content_index = 0
        self._item_ms = 0.0
        self._begins_ms = 0.0
        """Where on the device's count of played audio the item begins."""
        self._response = ""
        self._unwanted = ""
        """A response that was talked over: what still arrives of it is not played."""

    @property
    def is_playing(self) -> bool:
        """True while there is something to be heard, or more of it to come."""
        return bool(self._response) or (bool(self._item) and self._device.pending_ms > 0)

    def receive(self, delta: Event) -> None:
        """Play a `response.output_audio.delta`."""
        if delta["response_id"] == self._unwanted:
            return
        if delta["item_id"] != self._item:
            self._item, self._content_index = delta["item_id"], delta["content_index"]
            self._item_ms = 0.0
            self._begins_ms = self._device.played_ms + self._device.pending_ms
        self._response = delta["response_id"]
        pcm = base64.b64decode(delta["delta"])
        self._item_ms += len(pcm) / 2 / RATE * 1000
        self._device.play(pcm)

    def ended(self, response_id: str, *, cancelled: bool) -> Event | None:
        """No more audio of this response will come. Returns what `interrupt` does if it was cancelled."""
        if response_id != self._response:
            return None
        if cancelled:
            return self.interrupt()
        self._response = ""
        return None

    def interrupt(self) -> Event | None:
        """Fall silent. Returns the `conversation.item.truncate` that tells the server what was heard, if need be."""
        if not self.is_playing:
            return None
        self._device.flush()
        heard_ms = min(max(0.0, self._device.played_ms - self._begins_ms), self._item_ms)
        truncate = {
            "type": "conversation.item.truncate",
            "item_id": self._item,
            "content_index": self._content_index,
            "audio_end_ms": int(heard_ms),
        }
        self._unwanted, self._response, self._item = self._response, "", ""
        return truncate

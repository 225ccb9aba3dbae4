"""One scene played to a server in real time, by a client that does what stock clients do.

It plays what comes, in order and in real time; it falls silent on `speech_started` and says how much was heard.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from speech_to_speech.bench.playback_gaps import Gap, PlaybackGaps
from speech_to_speech.bench.scene_device import SceneDevice
from speech_to_speech.bench.scenes import Scene
from speech_to_speech.client.assistant_speech import AssistantSpeech
from speech_to_speech.client.audio_device import BLOCK_MS, RATE, Block
from speech_to_speech.client.realtime_client import Event, Observer, RealtimeClient, connect
from speech_to_speech.errors import SpeechToSpeechError
from speech_to_speech.stage_types import Samples

GIVE_UP_MS = 15_000
"""How long after the user's newest step an answer is waited for."""

SETTLING_MS = 3_000
"""How long nothing must have happened for a scene without an expected answer to be over."""

LISTEN_MS = 8_000
"""How much of the last answer is listened to."""

_TRANSCRIPTION = "conversation.item.input_audio_transcription"


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """One event of the connection. `ms`: length of the recording when it passed, in steps of 20 ms.

    Audio is replaced by its length: `audio_ms`.
    """

    ms: float
    direction: str
    event: Event


@dataclass(frozen=True, slots=True)
class PlayedScene:
    """What was recorded of a scene: 24 kHz, times in ms from the start of the recording.

    `step_starts_ms` has None for steps that waited in vain.
    """

    user: Samples
    assistant: Samples
    events: tuple[TimedEvent, ...]
    step_starts_ms: tuple[float | None, ...]
    gaps: tuple[Gap, ...] = ()


@dataclass(slots=True)
class _Server:
    """What the server has begun and not ended."""

    _turns: set[str] = field(default_factory=set)
    _replies: set[str] = field(default_factory=set)

    @property
    def is_busy(self) -> bool:
        """True while it hears or transcribes the user, or makes a reply."""
        return bool(self._turns) or self.is_replying

    @property
    def is_replying(self) -> bool:
        """True while it makes a reply."""
        return bool(self._replies)

    def receive(self, event: Event) -> None:
        """The server's next event."""
        kind = event["type"]
        if kind == "input_audio_buffer.speech_started":
            self._turns.add(event["item_id"])
        elif kind in (f"{_TRANSCRIPTION}.completed", f"{_TRANSCRIPTION}.failed"):
            self._turns.discard(event["item_id"])
        elif kind == "response.created":
            self._replies.add(event["response"]["id"])
        elif kind == "response.done":
            self._replies.discard(event["response"]["id"])


async def play_scene(
    url: str,
    scene: Scene,
    session: dict[str, Any],
    *,
    observer: Observer = lambda _direction, _event: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> PlayedScene:
    """Play `scene` in a conversation of its own with the session settings `session`.

    Raises `SpeechToSpeechError` when the connection is lost. `clock` and `sleep` are those of real time unless a test
    brings its own.
    """
    device = SceneDevice(scene, clock=clock, sleep=sleep)
    events: list[TimedEvent] = []

    def observe(direction: str, event: Event) -> None:
        observer(direction, event)
        if event["type"] != "input_audio_buffer.append":
            events.append(TimedEvent(device.now_ms, direction, _without_audio(event)))

    async with connect(url, observe) as client:
        player = _Player(client, scene, device)
        instructions = {} if scene.instructions is None else {"instructions": scene.instructions}
        await client.send({"type": "session.update", "session": {"type": "realtime", **session, **instructions}})
        reader = asyncio.create_task(player.read())
        try:
            await player.play(reader)
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
    starts = tuple(None if start is None else start / RATE * 1000 for start in device.user.starts)
    return PlayedScene(*device.recording, tuple(events), starts, tuple(player.gaps.found))


class _Player:
    def __init__(self, client: RealtimeClient, scene: Scene, device: SceneDevice) -> None:
        self.gaps = PlaybackGaps()
        self._client = client
        self._scene = scene
        self._device = device
        self._speech = AssistantSpeech(device)
        self._server = _Server()
        self._last_event_ms = 0.0
        self._false_stop_ms = float("inf")

    async def play(self, reader: asyncio.Task[None]) -> None:
        """Stream until the scene is over."""
        taken_ms = 0.0
        async for block in self._device.blocks():
            self._watch(block, self._device.played_ms - taken_ms)
            taken_ms = self._device.played_ms
            if reader.done():
                reader.result()
                raise SpeechToSpeechError(f"scene {self._scene.name}: {self._client.closing}")
            if self._is_over():
                return
            await self._client.send_audio(block.captured)

    async def read(self) -> None:
        """Play what comes, and answer as a stock client does."""
        async for event in self._client.events():
            complete = not self._server.is_replying
            self._server.receive(event)
            self._last_event_ms = self._device.now_ms
            truncate = self._play(event)
            if truncate is not None:
                self.gaps.flushed(truncate["item_id"], complete=complete)
                self._device.forget_audible()
                self._note_stop()
                await self._client.send(truncate)
                await self._client.send({"type": "conversation.item.retrieve", "item_id": truncate["item_id"]})

    def _note_stop(self) -> None:
        """A stop that should not be, once the user has reacted, says all there is to say."""
        user, reaction = self._device.user, self._scene.reaction
        since = user.end if reaction is None else user.starts[reaction]
        if self._scene.expect.interrupted is False and since is not None and self._device.position >= since:
            self._false_stop_ms = self._device.now_ms

    def _play(self, event: Event) -> Event | None:
        kind = event["type"]
        if kind == "response.output_audio.delta":
            self.gaps.delta(event["item_id"])
            self._speech.receive(event)
        elif kind == "input_audio_buffer.speech_started":
            return self._speech.interrupt()
        elif kind == "response.done":
            response = event["response"]
            return self._speech.ended(response["id"], cancelled=response["status"] == "cancelled")
        return None

    def _watch(self, block: Block, taken_ms: float) -> None:
        missing_ms = BLOCK_MS - taken_ms
        if missing_ms > 0:
            self.gaps.starved(missing_ms, self._device.now_ms - BLOCK_MS)

    def _is_over(self) -> bool:
        device, now_ms = self._device, self._device.now_ms
        waited_ms = now_ms - device.user.end / RATE * 1000
        if device.user.awaits_assistant:
            return waited_ms > GIVE_UP_MS
        if device.first_audible is not None and now_ms - device.first_audible / RATE * 1000 >= LISTEN_MS:
            return True
        if waited_ms > GIVE_UP_MS + LISTEN_MS or now_ms - self._false_stop_ms >= SETTLING_MS:
            return True
        if waited_ms < SETTLING_MS or self._speech.is_playing or self._server.is_busy:
            return False
        if self._scene.expect.reply and device.first_audible is None:
            return waited_ms > GIVE_UP_MS
        return now_ms - max(self._last_event_ms, device.last_audible / RATE * 1000) >= SETTLING_MS


def _without_audio(event: Event) -> Event:
    if event["type"] == "response.output_audio.delta":
        return {key: value for key, value in event.items() if key != "delta"} | {"audio_ms": _pcm_ms(event["delta"])}
    if event["type"] == "conversation.item.retrieved":
        parts = [{key: value for key, value in part.items() if key != "audio"} for part in event["item"]["content"]]
        return event | {"item": event["item"] | {"content": parts}}
    return event


def _pcm_ms(encoded: str) -> float:
    return len(base64.b64decode(encoded)) / 2 / RATE * 1000

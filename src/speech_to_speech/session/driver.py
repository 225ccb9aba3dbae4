"""The driver of one session; the only asyncio between the sockets and the models."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from speech_to_speech.audio.pcm import pcm16_to_samples, samples_to_pcm16
from speech_to_speech.audio.resampling import StreamResampler
from speech_to_speech.conversation.reply import Pacing, SpokenPiece
from speech_to_speech.errors import InvalidRequestError
from speech_to_speech.realtime.client_events import InputAudioBufferAppend, decode_client_event
from speech_to_speech.realtime.server_events import ServerEvent
from speech_to_speech.realtime.session import RealtimeSession
from speech_to_speech.realtime.session_config import ServerVoices
from speech_to_speech.runtime.inline import InlineRuntime
from speech_to_speech.stage_types import (
    RECOGNITION_RATE,
    CancelRequest,
    SpeechDone,
    SpeechProbability,
    SpeechResult,
    StageFailure,
    StageResult,
)

CLIENT_RATE = 24_000
MAXIMUM_APPEND_BYTES = 15 * 1024 * 1024
"""Decoded audio in one `input_audio_buffer.append`, as the Realtime API documents it."""

OFF_LOOP_FRAME_BYTES = 128 * 1024
"""Frames larger than this are parsed in a thread: base64 and JSON of 1 MiB block the loop for several ms."""

SLICE_BYTES = CLIENT_RATE * 2
"""Long audio enters the session in slices of one second, other sessions run in between."""

BACKLOG_FRAMES = 200
"""A session with more unjudged VAD frames than this (6.4 s) waits before it takes more audio."""


class SessionDriver:
    """Connects a `RealtimeSession` with the runtime and a client.

    `send` takes server events in order and must not block. All methods are called on the event loop.
    """

    def __init__(
        self,
        runtime: InlineRuntime,
        send: Callable[[ServerEvent], None],
        *,
        model: str,
        voices: ServerVoices,
        pacing: Pacing,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._send = send
        self.session = RealtimeSession(model=model, voices=voices, wall=time.time(), pacing=pacing)
        self._work = runtime.open(self.session.id, self._deliver)
        self._to_recognition = StreamResampler(CLIENT_RATE, RECOGNITION_RATE)
        self._unheard = bytearray()
        """PCM of the client that completes no VAD frame yet: it waits to be converted with what does."""
        self._frame_complete_at = 0
        """Bytes of `_unheard` that complete the next VAD frame."""
        self._to_client: dict[int, StreamResampler] = {}
        self._last_span: dict[int, tuple[int, int]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wakeup: float | None = None
        """When the timer is due."""
        self._closed = False
        self._frame_judged = asyncio.Event()
        self._results: deque[StageResult] = deque()
        self._results_announced = False
        self._flush()

    async def receive(self, frame: str | bytes) -> None:
        """One text frame of the client. Frames must be given one after the other, in their order."""
        try:
            if len(frame) > OFF_LOOP_FRAME_BYTES:
                event = await self._loop.run_in_executor(None, decode_client_event, frame)
            else:
                event = decode_client_event(frame)
        except InvalidRequestError as error:
            self.refuse(error)
            return
        if isinstance(event, InputAudioBufferAppend):
            await self._append(event)
        else:
            for slice_ in self._take_slices():
                self._hear(slice_)
            self.session.receive_event(event, self._loop.time())
            self._flush()

    def refuse(self, error: InvalidRequestError) -> None:
        """Answer something that is no event at all with an `error` event."""
        self.session.report_invalid(error)
        self._flush()

    def close(self) -> None:
        """The connection is gone."""
        if self._closed:
            return
        self._closed = True
        self._frame_judged.set()
        if self._timer is not None:
            self._timer.cancel()
        self.session.close()
        self._work.close()

    async def _append(self, event: InputAudioBufferAppend) -> None:
        try:
            if len(event.audio) > MAXIMUM_APPEND_BYTES:
                raise InvalidRequestError(
                    f"Invalid value for 'audio': at most {MAXIMUM_APPEND_BYTES // 2**20} MiB in one append, "
                    f"got {len(event.audio) / 2**20:.1f} MiB.",
                    param="audio",
                )
            if len(event.audio) % 2:
                raise InvalidRequestError(
                    f"Invalid value for 'audio': 16-bit PCM needs an even number of bytes, got {len(event.audio)}.",
                    param="audio",
                )
        except InvalidRequestError as error:
            self.session.report_invalid(error, event.event_id)
            self._flush()
            return
        self._unheard += event.audio
        if len(self._unheard) >= self._frame_complete_at:
            for slice_ in self._take_slices():
                self._hear(slice_, event.event_id)
                if len(event.audio) > SLICE_BYTES:
                    await asyncio.sleep(0)
                while self._work.waiting_frames > BACKLOG_FRAMES and not self._closed:
                    self._frame_judged.clear()
                    await self._frame_judged.wait()

    def _take_slices(self) -> list[bytes]:
        pcm = bytes(self._unheard)
        self._unheard.clear()
        return [pcm[start : start + SLICE_BYTES] for start in range(0, len(pcm), SLICE_BYTES)]

    def _hear(self, pcm: bytes, event_id: str | None = None) -> None:
        samples = self._to_recognition.process(pcm16_to_samples(pcm))
        self.session.append_audio(pcm, samples, event_id)
        self._frame_complete_at = 2 * self._to_recognition.missing(self.session.frame_lacks)
        self._carry_out()

    def _deliver(self, result: StageResult) -> None:
        """A worker thread brings a result; those that come before the loop gets to them are received together."""
        self._results.append(result)
        if self._results_announced:
            return
        self._results_announced = True
        try:
            self._loop.call_soon_threadsafe(self._receive_results)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def _receive_results(self) -> None:
        self._results_announced = False  # before the first is taken: none that comes later is overlooked
        if self._closed:
            return
        now = self._loop.time()
        for _ in range(len(self._results)):
            self._receive_result(self._results.popleft(), now)
        self._flush()

    def _receive_result(self, result: StageResult, now: float) -> None:
        if isinstance(result, SpeechResult):
            self._receive_speech(result, now)
            return
        if isinstance(result, SpeechDone):
            self._end_speech(result.token, now)
        elif isinstance(result, (SpeechProbability, StageFailure)):
            self._frame_judged.set()
        self.session.receive_result(result, now)

    def _receive_speech(self, result: SpeechResult, now: float) -> None:
        if self.session.is_stale(result.token):
            return
        piece = result.piece
        resampler = self._to_client.setdefault(result.token, StreamResampler(piece.sample_rate, CLIENT_RATE))
        self._last_span[result.token] = (piece.text_start, piece.text_end)
        pcm = samples_to_pcm16(resampler.process(piece.samples))
        spoken = SpokenPiece(pcm, piece.text_start, piece.text_end, piece.clause_end)
        self.session.receive_speech(result.token, spoken, now)

    def _end_speech(self, token: int, now: float) -> None:
        """All of a reply is spoken: bring out what its resampler holds back."""
        resampler = self._to_client.pop(token, None)
        if resampler is None:
            return
        rest = samples_to_pcm16(resampler.flush())
        start, end = self._last_span.pop(token)
        if rest:
            self.session.receive_speech(token, SpokenPiece(rest, start, end, True), now)

    def _advance(self) -> None:
        self._timer = self._wakeup = None
        self.session.advance(self._loop.time())
        self._flush()

    def _flush(self) -> None:
        """Carry out what the session asks for, and come back when it wants to."""
        self._carry_out()
        wakeup = None if self._closed else self.session.next_wakeup(self._loop.time())
        if wakeup == self._wakeup:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wakeup = wakeup
        if wakeup is not None:
            self._timer = self._loop.call_at(wakeup, self._advance)

    def _carry_out(self) -> None:
        for output in self.session.take_outputs():
            if isinstance(output, dict):
                self._send(output)
            else:
                if isinstance(output, CancelRequest):
                    self._to_client.pop(output.token, None)
                    self._last_span.pop(output.token, None)
                self._work.submit(output)

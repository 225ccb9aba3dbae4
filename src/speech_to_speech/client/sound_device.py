"""The machine's microphone and speaker, through PortAudio. The only file that imports `sounddevice`."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from speech_to_speech.client.audio_device import BLOCK_BYTES, BLOCK_MS, RATE, AudioDevice, Block
from speech_to_speech.client.playback_buffer import PlaybackBuffer
from speech_to_speech.client.speaker_reference import SpeakerReference
from speech_to_speech.errors import ConfigurationError, MissingDependencyError, SpeechToSpeechError

BUFFERED_S = 0.1
"""What each of the hardware's buffers may hold. The callbacks need the interpreter, which models in the same process
were seen to hold for up to 60 ms; a speaker that runs dry clicks."""

_INSTEAD = "a file can stand in for it: --input question.wav --output answer.wav"


class SoundDevice(AudioDevice):
    """The default input and output.

    Two streams and not one for both ways: in a common one, each time the speaker runs dry on a busy machine leaves
    the microphone behind for good.

    With `audible` false no speaker is used; what would have been played is still reported.
    """

    def __init__(self, *, audible: bool = True) -> None:
        """Opens the hardware; capturing begins with `blocks`. Raises a `SpeechToSpeechError` of one line."""
        self._playback = PlaybackBuffer()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: asyncio.Queue[Block | None] = asyncio.Queue()
        sounddevice = _import_sounddevice()
        self._speaker: Any = None
        held_blocks = 0
        if audible:
            self._speaker = _open(sounddevice, "output", self._speak, self._stopped)
            held_blocks = round(self._speaker.latency * 1000 / BLOCK_MS)
        self._in_hardware_ms = deque([0.0] * (1 + held_blocks))
        self._reference = SpeakerReference(slack=max(1, held_blocks // 2))
        self._microphone = _open(sounddevice, "input", self._hear if audible else self._hear_and_play, self._stopped)

    async def blocks(self) -> AsyncIterator[Block]:
        self._loop = asyncio.get_running_loop()
        try:
            if self._speaker is not None:
                self._speaker.start()
            self._microphone.start()
            while (block := await self._arrived.get()) is not None:
                yield block
        finally:  # the callbacks must not wake a loop that is being closed
            self._loop = None
        raise SpeechToSpeechError("the sound device stopped; was it unplugged?")

    def play(self, pcm: bytes) -> None:
        self._playback.play(pcm)

    def flush(self) -> None:
        self._playback.flush()

    @property
    def played_ms(self) -> float:
        return self._in_hardware_ms[0]

    @property
    def pending_ms(self) -> float:
        return self._playback.queued_ms + self._playback.taken_ms - self.played_ms

    def close(self) -> None:
        self._loop = None
        self._microphone.close()
        if self._speaker is not None:
            self._speaker.close()

    def _speak(self, output: Any, _frames: int, _time: Any, _status: Any) -> None:
        """PortAudio's thread of the speaker wants the next block."""
        block = self._next_played()
        self._reference.played(block)
        output[:] = block

    def _hear(self, captured: Any, _frames: int, _time: Any, _status: Any) -> None:
        """PortAudio's thread of the microphone has a block."""
        self._hand_over(Block(bytes(captured), self._reference.next()))

    def _hear_and_play(self, captured: Any, _frames: int, _time: Any, _status: Any) -> None:
        self._hand_over(Block(bytes(captured), self._next_played()))

    def _next_played(self) -> bytes:
        """Counts what was taken up to each of the last blocks; the oldest of them has reached the ear."""
        block = self._playback.take(BLOCK_BYTES)
        self._in_hardware_ms.append(self._playback.taken_ms)
        self._in_hardware_ms.popleft()
        return block

    def _stopped(self) -> None:
        self._hand_over(None)

    def _hand_over(self, block: Block | None) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._arrived.put_nowait, block)


_NAMES = {"input": "microphone", "output": "speaker"}


def sound_devices() -> dict[str, str]:
    """The names of the default microphone and speaker. Raises a `SpeechToSpeechError` of one line."""
    sounddevice = _import_sounddevice()
    return {name: str(_device(sounddevice, kind)["name"]) for kind, name in _NAMES.items()}


def _device(sounddevice: Any, kind: str) -> Any:
    try:
        return sounddevice.query_devices(kind=kind)
    except (ValueError, sounddevice.PortAudioError) as error:
        raise ConfigurationError(f"no {_NAMES[kind]} was found on this machine; {_INSTEAD}") from error


def _open(sounddevice: Any, kind: str, callback: Any, finished_callback: Any) -> Any:
    _device(sounddevice, kind)
    stream_class = sounddevice.RawInputStream if kind == "input" else sounddevice.RawOutputStream
    try:
        return stream_class(
            samplerate=RATE,
            blocksize=BLOCK_BYTES // 2,
            channels=1,
            dtype="int16",
            latency=BUFFERED_S,
            callback=callback,
            finished_callback=finished_callback,
        )
    except sounddevice.PortAudioError as error:
        raise ConfigurationError(f"cannot open the {_NAMES[kind]}: {error}; {_INSTEAD}") from error


def _import_sounddevice() -> Any:
    try:
        import sounddevice
    except ImportError as error:
        raise MissingDependencyError("sounddevice", "local") from error
    except OSError as error:
        raise ConfigurationError(f"the library PortAudio is not installed; {_portaudio_installation()}") from error
    return sounddevice


def _portaudio_installation() -> str:
    if sys.platform == "darwin":
        return "install it with: brew install portaudio"
    return "install it with: sudo apt-get install libportaudio2 (Debian, Ubuntu) or sudo dnf install portaudio (Fedora)"

"""The machine's microphone and speaker, through PortAudio. The only file that imports `sounddevice`."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from speech_to_speech.client.audio_device import BLOCK_BYTES, BLOCK_MS, RATE, AudioDevice, Block
from speech_to_speech.client.playback_buffer import PlaybackBuffer
from speech_to_speech.errors import ConfigurationError, MissingDependencyError, SpeechToSpeechError

BUFFERED_S = 0.1
"""What the hardware's buffers may hold. The callback needs the interpreter, which models in the same process were seen
to hold for up to 60 ms; a buffer that runs dry clicks, and shifts the echo under the canceller's feet."""

_INSTEAD = "a file can stand in for it: --input question.wav --output answer.wav"


class SoundDevice(AudioDevice):
    """The default input and output as one stream, so that each block heard comes with the block played meanwhile.

    With `audible` false the speaker stays silent; what would have been played is still reported.
    """

    def __init__(self, *, audible: bool = True) -> None:
        """Opens the hardware; capturing begins with `blocks`. Raises a `SpeechToSpeechError` of one line."""
        self._audible = audible
        self._playback = PlaybackBuffer()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: asyncio.Queue[Block | None] = asyncio.Queue()
        sounddevice = _import_sounddevice()
        _require_devices(sounddevice)
        try:
            self._stream = sounddevice.RawStream(
                samplerate=RATE,
                blocksize=BLOCK_BYTES // 2,
                channels=1,
                dtype="int16",
                latency=BUFFERED_S,
                callback=self._exchange,
                finished_callback=self._finished,
            )
        except sounddevice.PortAudioError as error:
            raise SpeechToSpeechError(f"cannot open microphone and speaker: {error}; {_INSTEAD}") from error
        blocks_in_hardware = round(self._stream.latency[1] * 1000 / BLOCK_MS)
        self._handed_over_ms = deque([0.0] * (blocks_in_hardware + 1), maxlen=blocks_in_hardware + 1)
        """Audio given to PortAudio up to each of the last blocks; what the oldest counts has reached the ear."""

    async def blocks(self) -> AsyncIterator[Block]:
        self._loop = asyncio.get_running_loop()
        self._stream.start()
        while (block := await self._arrived.get()) is not None:
            yield block
        raise SpeechToSpeechError("the sound device stopped; was it unplugged?")

    def play(self, pcm: bytes) -> None:
        self._playback.play(pcm)

    def flush(self) -> None:
        self._playback.flush()

    @property
    def played_ms(self) -> float:
        return self._handed_over_ms[0]

    @property
    def pending_ms(self) -> float:
        return self._playback.queued_ms + self._playback.taken_ms - self._handed_over_ms[0]

    def close(self) -> None:
        self._loop = None
        self._stream.close()

    def _exchange(self, captured: Any, played: Any, _frames: int, _time: Any, _status: Any) -> None:
        """Called by PortAudio in its own thread, once per block."""
        block = Block(bytes(captured), self._playback.take(len(played)))
        self._handed_over_ms.append(self._playback.taken_ms)
        played[:] = block.played if self._audible else bytes(len(played))
        self._hand_over(block)

    def _finished(self) -> None:
        self._hand_over(None)

    def _hand_over(self, block: Block | None) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._arrived.put_nowait, block)


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


def _require_devices(sounddevice: Any) -> None:
    for kind, name in (("input", "microphone"), ("output", "speaker")):
        try:
            sounddevice.query_devices(kind=kind)
        except (ValueError, sounddevice.PortAudioError) as error:
            raise ConfigurationError(f"no {name} was found on this machine; {_INSTEAD}") from error

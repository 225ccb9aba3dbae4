"""The adapter to PortAudio, against a stand-in for `sounddevice` whose callback the test calls."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from speech_to_speech.client.sound_device import SoundDevice
from speech_to_speech.errors import MissingDependencyError, SpeechToSpeechError

HEARD = b"\x01\x02" * 480
TONE = b"\x00\x10" * 480
SILENCE = bytes(960)


class PortAudioError(Exception):
    pass


class FakeStream:
    """One direction; the test makes its 20 ms pass."""

    latency = 0.04

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.started = self.closed = False

    def start(self) -> None:
        self.started = True

    def close(self) -> None:
        self.closed = True

    def hear(self) -> None:
        self.settings["callback"](HEARD, 480, None, None)

    def speak(self) -> bytes:
        played = bytearray(960)
        self.settings["callback"](memoryview(played), 480, None, None)
        return bytes(played)


@pytest.fixture
def sounddevice(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    fake = SimpleNamespace(
        PortAudioError=PortAudioError,
        RawInputStream=FakeStream,
        RawOutputStream=FakeStream,
        query_devices=lambda kind: {"name": kind},
    )
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


def microphone_of(device: SoundDevice) -> FakeStream:
    stream = device._microphone
    assert isinstance(stream, FakeStream)
    return stream


def speaker_of(device: SoundDevice) -> FakeStream:
    stream = device._speaker
    assert isinstance(stream, FakeStream)
    return stream


def test_both_ways_have_24_khz_mono_in_blocks_of_20_ms(sounddevice: SimpleNamespace) -> None:
    device = SoundDevice()
    for stream in (microphone_of(device), speaker_of(device)):
        settings = stream.settings
        assert (settings["samplerate"], settings["blocksize"]) == (24_000, 480)
        assert (settings["channels"], settings["dtype"]) == (1, "int16")


def test_each_block_heard_comes_with_the_block_played(sounddevice: SimpleNamespace) -> None:
    device = SoundDevice()

    async def talk() -> None:
        blocks = aiter(device.blocks())
        waiting = asyncio.ensure_future(anext(blocks))
        await asyncio.sleep(0)
        assert microphone_of(device).started
        assert speaker_of(device).started
        device.play(TONE)
        assert speaker_of(device).speak() == TONE
        microphone_of(device).hear()
        block = await waiting
        assert (block.captured, block.played) == (HEARD, TONE)
        assert speaker_of(device).speak() == SILENCE
        microphone_of(device).hear()
        assert (await anext(blocks)).played == SILENCE

    asyncio.run(talk())


def test_audio_counts_as_played_when_it_has_left_the_hardware(sounddevice: SimpleNamespace) -> None:
    device = SoundDevice()  # its hardware holds 40 ms, two blocks
    device.play(TONE * 3)
    progress = []
    for _ in range(6):
        speaker_of(device).speak()
        progress.append((device.played_ms, device.pending_ms))
    assert progress == [(0, 60), (0, 60), (20, 40), (40, 20), (60, 0), (60, 0)]


def test_a_flush_leaves_what_the_hardware_holds(sounddevice: SimpleNamespace) -> None:
    device = SoundDevice()
    device.play(TONE * 3)
    speaker_of(device).speak()
    device.flush()
    assert speaker_of(device).speak() == SILENCE
    assert (device.played_ms, device.pending_ms) == (0, 20)


def test_an_inaudible_device_needs_no_speaker_and_tells_what_it_would_have_played(
    sounddevice: SimpleNamespace,
) -> None:
    del sounddevice.RawOutputStream
    device = SoundDevice(audible=False)

    async def talk() -> None:
        blocks = aiter(device.blocks())
        waiting = asyncio.ensure_future(anext(blocks))
        await asyncio.sleep(0)
        device.play(TONE)
        microphone_of(device).hear()
        assert (await waiting).played == TONE
        assert (device.played_ms, device.pending_ms) == (20, 0)

    asyncio.run(talk())


@pytest.mark.parametrize("stream_of", [microphone_of, speaker_of])
def test_hardware_that_stops_ends_the_conversation(
    sounddevice: SimpleNamespace, stream_of: Callable[[SoundDevice], FakeStream]
) -> None:
    device = SoundDevice()

    async def talk() -> None:
        blocks = aiter(device.blocks())
        waiting = asyncio.ensure_future(anext(blocks))
        await asyncio.sleep(0)
        stream_of(device).settings["finished_callback"]()
        await waiting

    with pytest.raises(SpeechToSpeechError, match="sound device stopped"):
        asyncio.run(talk())


def test_closing_is_not_taken_for_a_failure_and_late_callbacks_are_ignored(sounddevice: SimpleNamespace) -> None:
    device = SoundDevice()
    device.close()
    for stream in (microphone_of(device), speaker_of(device)):
        assert stream.closed
        stream.settings["finished_callback"]()
    microphone_of(device).hear()
    assert device._arrived.empty()


def test_without_the_package_the_line_that_installs_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'speech-to-speech-server\[local\]'"):
        SoundDevice()


@pytest.mark.parametrize(
    ("platform", "line"),
    [
        ("linux", "sudo apt-get install libportaudio2 (Debian, Ubuntu) or sudo dnf install portaudio (Fedora)"),
        ("darwin", "brew install portaudio"),
    ],
)
def test_without_portaudio_the_line_that_installs_it_is_given(
    monkeypatch: pytest.MonkeyPatch, platform: str, line: str
) -> None:
    class Finder:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "sounddevice":
                raise OSError("PortAudio library not found")

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(SpeechToSpeechError) as refusal:
        SoundDevice()
    assert str(refusal.value).endswith(line)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("missing", "name"), [("input", "microphone"), ("output", "speaker")])
def test_a_machine_without_microphone_or_speaker_is_told_what_to_do(
    sounddevice: SimpleNamespace, missing: str, name: str
) -> None:
    def query_devices(kind: str) -> None:
        if kind == missing:
            raise PortAudioError("Error querying device -1")

    sounddevice.query_devices = query_devices
    with pytest.raises(SpeechToSpeechError, match=f"^no {name} was found on this machine; a file can stand in for it"):
        SoundDevice()


@pytest.mark.parametrize(("broken", "name"), [("RawInputStream", "microphone"), ("RawOutputStream", "speaker")])
def test_a_device_that_cannot_be_opened_is_one_line(sounddevice: SimpleNamespace, broken: str, name: str) -> None:
    def refuse(**_settings: Any) -> Callable[..., Any]:
        raise PortAudioError("Device unavailable [PaErrorCode -9985]")

    setattr(sounddevice, broken, refuse)
    with pytest.raises(SpeechToSpeechError, match=rf"^cannot open the {name}: Device unavailable"):
        SoundDevice()

"""`speech-to-speech talk`: a conversation through microphone and speaker, or with a recorded question."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.client.audio_device import AudioDevice
from speech_to_speech.client.dialogue import Dialogue
from speech_to_speech.client.echo_canceller import without_echo
from speech_to_speech.client.event_log import event_log
from speech_to_speech.client.file_device import FileDevice
from speech_to_speech.client.local_server import local_server
from speech_to_speech.client.realtime_client import connect, realtime_url
from speech_to_speech.client.recording import Recording
from speech_to_speech.client.screen import Screen
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.server.command import run_event_loop

Result = TypeVar("Result")


def talk(namespace: argparse.Namespace, configuration: Configuration) -> int:
    """Talk until Ctrl-C, or until the file is answered; returns the exit code.

    Raises a `SpeechToSpeechError` when the conversation cannot begin.
    """
    if namespace.output is not None:
        require_folder_of(namespace.output)
    if namespace.url is not None:
        realtime_url(namespace.url)
    recording = Recording()
    error = ""
    with closing(device_for(namespace)) as device:
        try:
            error = run(_conversation(device, recording, namespace, configuration))
        except KeyboardInterrupt:
            if namespace.input is not None:
                raise
    if namespace.output is not None:
        _write(recording, namespace.output)
    if error:
        print(f"speech-to-speech: {error}", file=sys.stderr)
        return 1
    return 0


def run(conversation: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end on an event loop of its own. Words that the terminal cannot show do not end a conversation."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    results: list[Result] = []

    async def keep_result() -> None:
        results.append(await conversation)

    run_event_loop(keep_result())
    return results[0]


def require_folder_of(path: str) -> None:
    """Find a file that cannot be written before a conversation is held for it. Raises `ConfigurationError`."""
    if not Path(path).absolute().parent.is_dir():
        raise ConfigurationError(f"--output {path}: there is no such folder")


def _write(recording: Recording, path: str) -> None:
    if recording.duration_s:
        recording.write(path)
        say(f"wrote {path} ({recording.duration_s:.1f} s)")
    else:
        say(f"nothing was heard: {path} is not written")


def say(line: str) -> None:
    """A line to the user about the program itself."""
    print(line, file=sys.stderr, flush=True)


def device_for(namespace: argparse.Namespace) -> AudioDevice:
    """Where the conversation is heard and played. An answer that is only recorded makes no echo, nor does a file."""
    if namespace.input is not None:
        return FileDevice.open(namespace.input)
    from speech_to_speech.client.sound_device import SoundDevice

    heard = namespace.output is None
    device = SoundDevice(audible=heard)
    return without_echo(device, say) if heard and not namespace.headphones else device


async def _conversation(
    device: AudioDevice, recording: Recording, namespace: argparse.Namespace, configuration: Configuration
) -> str:
    async with AsyncExitStack() as stack:
        url = namespace.url or await stack.enter_async_context(local_server(configuration, say))
        observer = stack.enter_context(event_log(namespace.events))
        client = await stack.enter_async_context(connect(url, observer))
        if namespace.input is None:
            say("speak; Ctrl-C ends the conversation")
        dialogue = Dialogue(
            client,
            device,
            Screen(sys.stdout),
            recording,
            instructions=namespace.instructions,
            timeout_s=namespace.timeout,
            show_waterfall=namespace.input is not None,
        )
        return await dialogue.run()

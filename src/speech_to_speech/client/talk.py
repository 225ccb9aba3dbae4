"""`speech-to-speech talk`: a conversation through microphone and speaker, or with a recorded question."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.arguments_classes.key_file import read_key
from speech_to_speech.arguments_classes.parsing import options
from speech_to_speech.client.audio_device import AudioDevice
from speech_to_speech.client.dialogue import Dialogue
from speech_to_speech.client.echo_canceller import without_echo
from speech_to_speech.client.event_log import event_log
from speech_to_speech.client.file_device import FileDevice
from speech_to_speech.client.local_server import local_server
from speech_to_speech.client.realtime_client import KEY_VARIABLE, connect, realtime_url
from speech_to_speech.client.recording import Recording
from speech_to_speech.client.screen import Screen
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.server.command import run_event_loop

Result = TypeVar("Result")


def talk(namespace: argparse.Namespace, configuration: Configuration) -> int:
    """Talk until Ctrl-C, or until the file is answered; returns the exit code.

    Raises a `SpeechToSpeechError` when the conversation cannot begin.
    """
    _check_files(namespace)
    if not namespace.timeout > 0:
        raise ConfigurationError(f"--timeout {namespace.timeout:g}: expected more than 0 seconds")
    if namespace.url is not None:
        realtime_url(namespace.url)
        _check_no_server_options(namespace)
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


def check_writable(flag: str, path: str) -> None:
    """Find a file that cannot be written before a conversation is held for it. Raises `ConfigurationError`."""
    place = Path(path).absolute()
    if not place.parent.is_dir():
        raise ConfigurationError(f"{flag} {path}: there is no such folder")
    if place.is_dir():
        raise ConfigurationError(f"{flag} {path}: this is a folder")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise ConfigurationError(f"{flag} {path}: this place cannot be written")


def _check_files(namespace: argparse.Namespace) -> None:
    named = {flag: getattr(namespace, flag) for flag in ("input", "output", "events")}
    places: dict[Path, str] = {}
    for flag, path in named.items():
        if path is None:
            continue
        if flag != "input":
            check_writable(f"--{flag}", path)
        other = places.setdefault(Path(path).resolve(), flag)
        if other != flag:
            raise ConfigurationError(f"--{flag} {path}: this is the file of --{other}; choose another")


def _check_no_server_options(namespace: argparse.Namespace) -> None:
    """With `--url` the server is there already, and its options with it."""
    given = [option.name for option in options() if getattr(namespace, f"option:{option.name}", None) is not None]
    without_effect = [name for name in given if name != "api_key_file"]
    if without_effect:
        raise ConfigurationError(f"--{without_effect[0]} is for a server started here; leave it out with --url")


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
        key_file = configuration.server.api_key_file if namespace.url else ""
        key = read_key("--api_key_file", key_file, KEY_VARIABLE)
        client = await stack.enter_async_context(connect(url, observer, key))
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

"""`speech-to-speech demo`: asks a packaged question out loud and shows what became of it."""

from __future__ import annotations

import sys
from importlib.resources import as_file, files
from pathlib import Path

from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.client.dialogue import Dialogue
from speech_to_speech.client.file_device import FileDevice
from speech_to_speech.client.local_server import local_server
from speech_to_speech.client.realtime_client import connect
from speech_to_speech.client.recording import Recording
from speech_to_speech.client.screen import Screen
from speech_to_speech.client.talk import check_writable, run, say
from speech_to_speech.errors import SpeechToSpeechError


def demo(configuration: Configuration, output_path: str) -> int:
    """Ask, show transcript, answer and timeline, write the answer; returns 0 or raises a `SpeechToSpeechError`."""
    check_writable("--output", output_path)
    recording = Recording()
    if error := run(_conversation(configuration, recording)):
        raise SpeechToSpeechError(error)
    recording.write(output_path)
    command = command_path()
    print(
        f"The answer is in {output_path} ({recording.duration_s:.1f} s).\n"
        f"Go on with\n"
        f"  {command} serve   the server, for every client of the OpenAI Realtime API\n"
        f"  {command} talk    your own voice; needs a microphone"
    )
    return 0


async def _conversation(configuration: Configuration, recording: Recording) -> str:
    with as_file(files("speech_to_speech.client") / "assets" / "question.wav") as path:
        device = FileDevice.open(path)
    async with local_server(configuration, say) as url, connect(url) as client:
        say("asking a packaged question over a Realtime WebSocket, at the pace of speech ...")
        return await Dialogue(client, device, Screen(sys.stdout), recording, show_waterfall=True).run()


def command_path() -> str:
    """How this installation's command is called from the current folder."""
    command = Path(sys.executable).with_name("speech-to-speech")
    if not command.exists():
        return "speech-to-speech"
    try:
        return str(command.relative_to(Path.cwd()))
    except ValueError:
        return str(command)

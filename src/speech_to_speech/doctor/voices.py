"""`speech-to-speech voices`: what `--tts_voice` takes, backend by backend."""

from __future__ import annotations

from speech_to_speech.errors import SpeechToSpeechError
from speech_to_speech.runtime.backends import backend_class
from speech_to_speech.runtime.installed_backends import backend_names


def print_voices() -> None:
    """Print the voices that are known without loading a model."""
    for name in backend_names("tts"):
        try:
            voices = backend_class("tts", name).voice_names()
        except SpeechToSpeechError as error:
            print(f"{name}: {error}")
            continue
        print(f"--tts {name}")
        for voice in voices:
            print(f"  --tts_voice {voice}")
    print(
        "Piper takes any other voice of its collection by name, such as en_GB-alba-medium, or a path to its .onnx file."
    )

"""The error family: every failure a user or a client can meet, named once.

`realtime/error_codes.py` maps each class to its Realtime error type and code; nothing else invents codes.
"""

from __future__ import annotations


class SpeechToSpeechError(Exception):
    """Base of every error this project raises on purpose. The message is one line a user can act on."""


class ConfigurationError(SpeechToSpeechError):
    """A flag, a YAML key or a combination of them that cannot be used. Raised before any model loads."""


class MissingDependencyError(SpeechToSpeechError):
    """An optional package is not installed; the message ends with the one line that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; install it with: pip install 'speech-to-speech-server[{extra}]'")
        self.package = package
        self.extra = extra


class AssetError(SpeechToSpeechError):
    """A model file could not be found, fetched or verified."""


class ModelLoadError(SpeechToSpeechError):
    """A backend could not load its model."""


class StageError(SpeechToSpeechError):
    """A stage failed while serving one request; the session lives on."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(f"{stage}: {message}")
        self.stage = stage


class ContextOverflowError(StageError):
    """The prompt does not fit the language model's context even after old turns were dropped."""

    def __init__(self, message: str) -> None:
        super().__init__("llm", message)


class Cancelled(SpeechToSpeechError):
    """Raised inside a stage call when its request was cancelled. Never reaches a client."""


class InvalidRequestError(SpeechToSpeechError):
    """A client event that cannot be carried out; answered by an `error` event, the session lives on.

    `code` is the Realtime error code, `param` the path of the offending field.
    """

    def __init__(self, message: str, *, code: str = "invalid_value", param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param

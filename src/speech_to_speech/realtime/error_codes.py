"""One table from our errors to the Realtime API's error types and codes."""

from __future__ import annotations

from speech_to_speech.errors import (
    AssetError,
    Cancelled,
    ConfigurationError,
    ContextOverflowError,
    InvalidRequestError,
    MissingDependencyError,
    ModelLoadError,
    SpeechToSpeechError,
    StageError,
)

ERROR_CODES: dict[type[SpeechToSpeechError], tuple[str, str]] = {
    InvalidRequestError: ("invalid_request_error", "invalid_value"),
    ContextOverflowError: ("invalid_request_error", "context_length_exceeded"),
    StageError: ("server_error", "server_error"),
    ConfigurationError: ("server_error", "server_error"),
    MissingDependencyError: ("server_error", "server_error"),
    AssetError: ("server_error", "server_error"),
    ModelLoadError: ("server_error", "server_error"),
    Cancelled: ("server_error", "server_error"),
}
"""Error class → (error.type, error.code). An `InvalidRequestError` carries a code of its own."""

STAGE_FAILURE = ERROR_CODES[StageError]


def error_type_and_code(error: SpeechToSpeechError) -> tuple[str, str]:
    """The Realtime error type and code of `error`."""
    if isinstance(error, InvalidRequestError):
        return ERROR_CODES[InvalidRequestError][0], error.code
    return ERROR_CODES.get(type(error), STAGE_FAILURE)

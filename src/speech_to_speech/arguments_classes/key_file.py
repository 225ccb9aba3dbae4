"""Keys are read from a file or the environment: on the command line everybody on the machine could read them."""

from __future__ import annotations

import os
from pathlib import Path

from speech_to_speech.errors import ConfigurationError


def read_key(flag: str, path: str, variable: str) -> str:
    """The first line of the file at `path`, the value of `flag`; without a path the environment variable, or "".

    Raises `ConfigurationError`.
    """
    if not path:
        return os.environ.get(variable, "").strip()
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigurationError(f"{flag} {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{flag} {path}: not a text file") from error
    key = lines[0].strip() if lines else ""
    if not key:
        raise ConfigurationError(f"{flag} {path}: the first line is empty")
    return key

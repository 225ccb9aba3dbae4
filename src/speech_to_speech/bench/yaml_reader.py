"""YAML files read field by field; what is wrong is told by file, key and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from speech_to_speech.errors import ConfigurationError


class Fields:
    """The mapping at `where` of the file `path`. Each reader raises `ConfigurationError`."""

    def __init__(self, path: Path, where: str, values: Any) -> None:
        self._path = path
        self._where = where
        if not isinstance(values, dict):
            raise ConfigurationError(f"{path}: {where or 'the file'}: expected names and values")
        self._values: dict[Any, Any] = values
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str) -> str:
        """A text that is not empty."""
        value = self._value(key)
        if not isinstance(value, str) or not value:
            raise self.wrong(key, f"{value!r}: expected text")
        return value

    def one_of(self, key: str, allowed: Sequence[str]) -> Any:
        """One of the words `allowed`."""
        value = self._value(key)
        if value not in allowed:
            raise self.wrong(key, f"{value!r}: expected one of {', '.join(allowed)}")
        return value

    def boolean(self, key: str) -> bool:
        """true or false."""
        value = self._value(key)
        if not isinstance(value, bool):
            raise self.wrong(key, f"{value!r}: expected true or false")
        return value

    def whole(self, key: str, low: int = 0, high: int = 600_000) -> int:
        """A whole number from `low` to `high`."""
        value = self._value(key)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(key, f"{value!r}: expected a whole number from {low} to {high}")
        return value

    def number(self, key: str, low: float, high: float) -> float:
        """A number from `low` to `high`."""
        value = self._value(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(key, f"{value!r}: expected a number from {low:g} to {high:g}")
        return float(value)

    def group(self, key: str) -> Fields:
        """The mapping under `key`."""
        return Fields(self._path, self._name(key), self._value(key))

    def items(self, key: str) -> list[Fields]:
        """The mappings of the list under `key`, at least one."""
        value = self._value(key)
        if not isinstance(value, list) or not value:
            raise self.wrong(key, "expected a list with at least one entry")
        return [Fields(self._path, f"{self._name(key)}[{index}]", entry) for index, entry in enumerate(value)]

    def nothing_else(self) -> None:
        """Refuse keys that nobody has read."""
        for key in self._values:
            if key not in self._read:
                raise self.wrong(str(key), f"unknown key; known here: {', '.join(sorted(self._read))}")

    def wrong(self, key: str, remedy: str) -> ConfigurationError:
        """The error that names `key`."""
        return ConfigurationError(f"{self._path}: {self._name(key)}: {remedy}")

    def _value(self, key: str) -> Any:
        self._read.add(key)
        if key not in self._values:
            raise self.wrong(key, "missing; add it")
        return self._values[key]

    def _name(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key


def read_fields(path: Path) -> Fields:
    """The mapping that the file `path` holds. Raises `ConfigurationError`."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path}: {' '.join(str(error).split())}") from error
    return Fields(path, "", content)

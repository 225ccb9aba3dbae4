"""From command-line flags and YAML to a `Configuration`. Names, types and help come from the dataclasses."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Option:
    """One option: flag `--{name}` and YAML key `{name}`. `component` and `attribute` say where it is stored."""

    name: str
    component: str
    attribute: str
    type: type
    default: Any
    metadata: Mapping[str, Any] = field(hash=False)

    def convert(self, value: Any) -> Any:
        """`value` (a flag's text or a YAML scalar) as this option's type, in range. Raises `ConfigurationError`."""
        try:
            converted = self._typed(value)
        except (TypeError, ValueError):
            raise self._refusal(value, f"expected {_TYPE_NAMES[self.type]}") from None
        choices = self.metadata.get("choices")
        if choices is not None and converted not in choices:
            raise self._refusal(value, f"expected one of {', '.join(choices)}")
        low, high = self.metadata.get("minimum"), self.metadata.get("maximum")
        if converted != converted:  # not a number
            raise self._refusal(value, "expected a number")
        if low is not None and converted < low:
            raise self._refusal(value, f"expected at least {low}")
        if high is not None and converted > high:
            raise self._refusal(value, f"expected at most {high}")
        return converted

    def _typed(self, value: Any) -> Any:
        if self.type is bool:
            return _boolean(value)
        if isinstance(value, bool) or (self.type is str and not isinstance(value, str | int | float)):
            raise TypeError
        if self.type is int and isinstance(value, float):
            raise TypeError
        return self.type(value)

    def _refusal(self, value: Any, expected: str) -> ConfigurationError:
        return ConfigurationError(f"--{self.name} {value}: {expected}")


_TYPE_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _BOOLEANS:
        return _BOOLEANS[value.lower()]
    raise ValueError


def options() -> list[Option]:
    """Every option, in the order of the dataclasses."""
    found = []
    for component in dataclasses.fields(Configuration):
        arguments_class: Any = component.default_factory
        types = get_type_hints(arguments_class)
        for argument in dataclasses.fields(arguments_class):
            assert argument.default is not MISSING
            name = component.metadata["prefix"] + argument.name
            found.append(
                Option(name, component.name, argument.name, types[argument.name], argument.default, argument.metadata)
            )
    return found


def add_options(parser: argparse.ArgumentParser, backends: Mapping[str, Sequence[str]] | None = None) -> None:
    """Give `parser` a flag per option and `--config`. `backends` are the installed ones by stage, for the help."""
    parser.add_argument("--config", metavar="FILE", help="YAML file with the same names; flags win over it")
    groups: dict[str, Any] = {}
    for option in options():
        group = groups.setdefault(option.component, parser.add_argument_group(f"{option.component} options"))
        group.add_argument(
            f"--{option.name}",
            dest=f"option:{option.name}",
            metavar=option.type.__name__.upper(),
            default=None,
            **({"nargs": "?", "const": "true"} if option.type is bool else {}),
            help=_help(option, backends or {}).replace("%", "%%"),
        )


def _help(option: Option, backends: Mapping[str, Sequence[str]]) -> str:
    names = backends.get(option.metadata.get("stage", ""))
    values = names or option.metadata.get("choices")
    listed = f": {', '.join(values)}" if values else ""
    default = option.default if option.default != "" else "none"
    return f"{option.metadata['help']}{listed} (default: {default})"


def configuration_from(namespace: argparse.Namespace) -> Configuration:
    """The configuration of a parsed command line. Raises `ConfigurationError`."""
    values = _from_yaml(namespace.config) if namespace.config else {}
    for option in options():
        given = getattr(namespace, f"option:{option.name}")
        if given is not None:
            values[option.name] = option.convert(given)
    return _build(values)


def _from_yaml(path: str) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"--config {path}: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(f"--config {path}: expected names and values, one per line, such as 'port: 8765'")
    known = {option.name: option for option in options()}
    values = {}
    for key, value in content.items():
        name = str(key).replace("-", "_")
        if name not in known:
            raise ConfigurationError(f"--config {path}: unknown key '{key}'{_nearest(name, known)}")
        try:
            values[name] = known[name].convert(value)
        except ConfigurationError as error:
            raise ConfigurationError(f"--config {path}: {str(error).removeprefix('--')}") from error
    return values


def _build(values: dict[str, Any]) -> Configuration:
    by_component: dict[str, dict[str, Any]] = {}
    for option in options():
        if option.name in values:
            by_component.setdefault(option.component, {})[option.attribute] = values[option.name]
    configuration = Configuration()
    changes = {
        component: dataclasses.replace(getattr(configuration, component), **changed)
        for component, changed in by_component.items()
    }
    return dataclasses.replace(configuration, **changes)


def _nearest(name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""


class StrictParser(argparse.ArgumentParser):
    """Takes hyphens for underscores in flags, never guesses abbreviations, and answers mistakes in one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, refusing what is unknown with the nearest valid name. Raises `ConfigurationError`."""
        parsed, unknown = self.parse_known_args([_underscored(arg) for arg in args or []], namespace)
        if unknown:
            raise ConfigurationError(f"unknown argument '{unknown[0]}'{_nearest(unknown[0], self._flags())}")
        return parsed

    def error(self, message: str) -> NoReturn:
        raise ConfigurationError(message)

    def _flags(self) -> list[str]:
        flags = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    flags += parser._option_string_actions
        return flags


def _underscored(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument[2:].partition("=")
    return "--" + name.replace("-", "_") + equals + value

"""`speech-to-speech doctor`: what works on this machine, what does not, why, and the line that mends it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from speech_to_speech import __version__
from speech_to_speech.arguments_classes import Configuration
from speech_to_speech.doctor.machine import Finding, machine_findings, reason_and_remedy
from speech_to_speech.errors import SpeechToSpeechError
from speech_to_speech.models.catalogue import describe
from speech_to_speech.models.progress import megabytes
from speech_to_speech.runtime.backends import arguments_of, backend_class
from speech_to_speech.runtime.installed_backends import STAGES, backend_names


@dataclass(frozen=True, slots=True)
class BackendFinding:
    """One backend of one stage. `chosen`: the configuration uses it. `reason` and `remedy` are "" when it works."""

    stage: str
    name: str
    chosen: bool
    works: bool
    reason: str = ""
    remedy: str = ""


def doctor(configuration: Configuration, *, as_json: bool) -> int:
    """Print the report; returns 0 when every backend of the configuration works, else 1."""
    machine = machine_findings()
    backends = [backend for stage in STAGES for backend in _backends(stage, configuration)]
    missing = [row for row in describe() if row.default and not row.present]
    if as_json:
        report = {
            "version": __version__,
            "machine": [asdict(finding) for finding in machine],
            "backends": [asdict(backend) for backend in backends],
            "models_to_download": [{"name": row.name, "bytes": row.size} for row in missing],
        }
        print(json.dumps(report, indent=1))
    else:
        _print(machine, backends)
        if missing:
            size = megabytes(sum(row.size for row in missing))
            print(f"\n{len(missing)} of the default models are not here yet ({size}): speech-to-speech download")
    return 0 if all(backend.works for backend in backends if backend.chosen) else 1


def _backends(stage: str, configuration: Configuration) -> list[BackendFinding]:
    chosen = getattr(configuration.pipeline, stage)
    names = backend_names(stage)
    return [_examine(stage, name, name == chosen, configuration) for name in [*names, *{chosen} - set(names)]]


def _examine(stage: str, name: str, chosen: bool, configuration: Configuration) -> BackendFinding:
    try:
        backend_class(stage, name).check(arguments_of(stage, configuration))
    except SpeechToSpeechError as error:
        reason, remedy = reason_and_remedy(error)
        return BackendFinding(stage, name, chosen, False, reason, remedy)
    except Exception as error:  # somebody else's backend
        return BackendFinding(stage, name, chosen, False, f"{type(error).__name__}: {error}")
    return BackendFinding(stage, name, chosen, True)


def _print(machine: list[Finding], backends: list[BackendFinding]) -> None:
    print(f"speech-to-speech {__version__}\n")
    for finding in machine:
        print(f"{finding.name:11} {finding.value}")
        _print_remedy(finding.remedy)
    print()
    for backend in backends:
        star = "*" if backend.chosen else " "
        print(f"{backend.stage:5} {backend.name:16}{star} {'works' if backend.works else 'cannot: ' + backend.reason}")
        _print_remedy(backend.remedy)
    print("* the one that would be used")


def _print_remedy(remedy: str) -> None:
    if remedy:
        print(f"{'':11} -> {remedy}")

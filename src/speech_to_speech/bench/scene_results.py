"""What was judged so far, a line of JSON per played scene: a run that was stopped goes on where it was."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_to_speech.bench.scene_judge import Verdict
from speech_to_speech.bench.scenes import Scene
from speech_to_speech.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Result:
    """One verdict, and what it is about. `repeat` counts from 1."""

    scene: str
    kind: str
    split: str
    real: bool
    policy: str
    repeat: int
    verdict: Verdict


class ResultLog:
    """The results of scenes as they are, by models as they are; those of changed scenes or other models do not count.

    `path` None keeps nothing. Raises `ConfigurationError` naming the file.
    """

    def __init__(self, path: Path | None, models: dict[str, str]) -> None:
        self._path = path
        self._models = models
        self._known: dict[tuple[str, str, str, int], Result] = {}
        if path is not None and path.exists():
            try:
                for line in _lines(path):
                    self._take(line)
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ConfigurationError(f"{path}: not results of this version ({error}); remove it") from error

    def find(self, scene: Scene, policy: str, repeat: int) -> Result | None:
        """The result of an earlier run."""
        return self._known.get((scene.name, scene.digest, policy, repeat))

    def add(self, scene: Scene, policy: str, repeat: int, verdict: Verdict) -> Result:
        """Keep a result; it is on the disk when this returns."""
        result = Result(scene.name, scene.kind, scene.split, scene.real, policy, repeat, verdict)
        self._known[scene.name, scene.digest, policy, repeat] = result
        if self._path is not None:
            line = {"digest": scene.digest, "models": self._models, **dataclasses.asdict(result)}
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            except OSError as error:
                raise ConfigurationError(f"{self._path}: {error.strerror or error}") from error
        return result

    def _take(self, line: dict[str, Any]) -> None:
        if line.pop("models") != self._models:
            return
        digest = line.pop("digest")
        result = Result(**line | {"verdict": Verdict(**line["verdict"])})
        self._known[result.scene, digest, result.policy, result.repeat] = result


def _lines(path: Path) -> list[dict[str, Any]]:
    """Every line but a last one that was not written to its end."""
    written = path.read_text(encoding="utf-8")
    whole = written[: written.rfind("\n") + 1]
    if whole != written:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]

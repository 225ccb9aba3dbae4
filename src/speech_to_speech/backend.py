"""What every backend class has, whatever its stage."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, ClassVar

from speech_to_speech.errors import MissingDependencyError, ModelLoadError


@dataclass(frozen=True, slots=True)
class Requirement:
    """A library a backend imports: `module`, of the distribution `package`, in the extra `extra` ("": always there)."""

    module: str
    package: str
    extra: str = ""

    def check(self) -> None:
        """Import it. Raises `MissingDependencyError`, or `ModelLoadError` where it is installed and does not load."""
        try:
            importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if self.extra and error.name == self.module.partition(".")[0]:
                raise MissingDependencyError(self.package, self.extra) from error
            raise self._broken(error) from error
        except Exception as error:  # native libraries fail to load in many ways
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> ModelLoadError:
        reason = " ".join(str(error).split())
        return ModelLoadError(
            f"{self.package} does not load ({reason}); try: pip install --force-reinstall {self.package}"
        )


class Backend:
    """The base of every stage's interface."""

    requirements: ClassVar[tuple[Requirement, ...]] = ()
    """The libraries `load` imports."""

    @classmethod
    def check(cls, arguments: Any) -> None:
        """Find out whether this backend can run here, without loading a model.

        Raises the `SpeechToSpeechError` that `load` would raise.
        """
        for requirement in cls.requirements:
            requirement.check()

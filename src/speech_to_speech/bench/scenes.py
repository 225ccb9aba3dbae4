"""The scenes of the turn benchmark: who speaks when relative to whom, and what should happen.

A folder holds a folder per scene: WAV files and a `scene.yaml`. `scripts/make_scenes.py` makes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from speech_to_speech.audio.wav import read_wav
from speech_to_speech.bench.questions import VOICED_LEVEL
from speech_to_speech.bench.yaml_reader import Fields, read_fields
from speech_to_speech.client.audio_device import RATE
from speech_to_speech.errors import ConfigurationError
from speech_to_speech.stage_types import Samples

KINDS = (
    "question",
    "pause",
    "trailing",
    "numbers",
    "hesitation",
    "noise",
    "backchannel",
    "interruption",
    "cough",
    "leak",
)
SPLITS = ("train", "heldout")

Role: TypeAlias = Literal["turn", "backchannel", "noise"]
Anchor: TypeAlias = Literal["start", "user_end", "assistant_start"]

ROOM_LEVEL = 0.0003
"""RMS of the room while nobody speaks, as a share of full scale (-70 dB): a quiet room, and never digital silence."""


@dataclass(frozen=True)
class Step:
    """One sound on the user's side (24 kHz): it starts `offset_ms` after `after`.

    `start` is the recording's start, `user_end` the end of the step before, `assistant_start` the first audible sample
    of the assistant since then. `role`: "turn" wants an answer, "backchannel" does not, "noise" is no speech.
    """

    wav: str
    samples: Samples
    role: Role
    after: Anchor
    offset_ms: int

    @property
    def duration_ms(self) -> float:
        """Length of the sound."""
        return len(self.samples) / RATE * 1000

    @cached_property
    def voiced_ms(self) -> tuple[float, float]:
        """First and last sample above `VOICED_LEVEL`, in ms from the step's start; the whole step if none is."""
        voiced = np.flatnonzero(np.abs(self.samples) > VOICED_LEVEL)
        if not len(voiced):
            return 0.0, self.duration_ms
        return float(voiced[0]) / RATE * 1000, float(voiced[-1]) / RATE * 1000


@dataclass(frozen=True, slots=True)
class Leak:
    """The assistant's voice on its way from the speaker into the microphone."""

    delay_ms: int
    gain_db: float


@dataclass(frozen=True, slots=True)
class Expectation:
    """What should happen.

    `turns` of the user are answered; a `reply` comes to the last one. `must_not_reply_before_ms` counts from the start
    of the first step that is a turn. `interrupted`: the assistant has to stop (True) or to go on (False) when the step
    after `assistant_start` sounds; None where nothing of the kind happens.
    """

    turns: int
    reply: bool
    must_not_reply_before_ms: int | None
    interrupted: bool | None


@dataclass(frozen=True)
class Scene:
    """One scene. `digest` changes with any of its files; `instructions` None means the server's own."""

    name: str
    kind: str
    split: str
    voice: str
    template: str
    real: bool
    seed: int
    steps: tuple[Step, ...]
    expect: Expectation
    leak: Leak | None
    instructions: str | None
    digest: str

    @property
    def first_turn(self) -> int | None:
        """Which step is the user's first turn."""
        return next((index for index, step in enumerate(self.steps) if step.role == "turn"), None)

    @property
    def last_turn(self) -> int | None:
        """Which step is the user's last turn."""
        return next((index for index in reversed(range(len(self.steps))) if self.steps[index].role == "turn"), None)

    @property
    def reaction(self) -> int | None:
        """Which step sounds into the assistant's answer."""
        return next((index for index, step in enumerate(self.steps) if step.after == "assistant_start"), None)


def load_scenes(folder: Path, *, kinds: Sequence[str] = (), split: str = "", limit: int | None = None) -> list[Scene]:
    """The scenes in `folder`, kinds taking turns so that a part of a run has all of them.

    `kinds` and `split` choose ("" and () all), `limit` takes the first so many. Raises `ConfigurationError` naming
    file, key and remedy.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ConfigurationError(f"--kinds {unknown[0]}: expected some of {', '.join(KINDS)}")
    if split and split not in SPLITS:
        raise ConfigurationError(f"--split {split}: expected {' or '.join(SPLITS)}")
    if limit is not None and limit < 1:
        raise ConfigurationError(f"--limit {limit}: expected at least 1")
    paths = sorted(folder.glob("*/scene.yaml"))
    if not paths:
        raise ConfigurationError(
            f"--scenes {folder}: no */scene.yaml there; make some: scripts/make_scenes.py {folder}"
        )
    scenes = [load_scene(path) for path in paths]
    chosen = [scene for scene in scenes if scene.kind in (kinds or KINDS) and split in ("", scene.split)]
    if not chosen:
        raise ConfigurationError(f"--scenes {folder}: none of its {len(scenes)} scenes is of these --kinds and --split")
    by_kind = [[scene for scene in chosen if scene.kind == kind] for kind in KINDS]
    return [scene for row in zip_longest(*by_kind) for scene in row if scene is not None][:limit]


def load_scene(path: Path) -> Scene:
    """Read one `scene.yaml` and its WAV files. Raises `ConfigurationError` naming file, key and remedy."""
    fields = read_fields(path)
    steps = tuple(_step(path.parent, item) for item in fields.items("steps"))
    scene = Scene(
        name=path.parent.name,
        kind=fields.one_of("kind", KINDS),
        split=fields.one_of("split", SPLITS),
        voice=fields.text("voice"),
        template=fields.text("template"),
        real=fields.boolean("real"),
        seed=fields.whole("seed", 0, 2**31),
        steps=steps,
        expect=_expectation(fields.group("expect")),
        leak=_leak(fields.group("leak")) if "leak" in fields else None,
        instructions=fields.text("instructions") if "instructions" in fields else None,
        digest=_digest(path, steps),
    )
    if steps[0].after != "start":
        raise fields.wrong("steps[0].at.after", "the first step has nobody to wait for; use start")
    if scene.expect.turns != sum(step.role == "turn" for step in steps):
        raise fields.wrong("expect.turns", "it must be the number of steps with role turn")
    if scene.expect.interrupted and scene.reaction is None:
        raise fields.wrong("expect.interrupted", "no step starts after assistant_start: nothing can interrupt")
    fields.nothing_else()
    return scene


def _step(folder: Path, fields: Fields) -> Step:
    at = fields.group("at")
    anchors: tuple[Any, ...] = ("start", "user_end", "assistant_start")
    roles: tuple[Any, ...] = ("turn", "backchannel", "noise")
    wav = fields.text("wav")
    step = Step(
        wav, read_wav(folder / wav, RATE), fields.one_of("role", roles), at.one_of("after", anchors), at.whole("ms")
    )
    at.nothing_else()
    fields.nothing_else()
    return step


def _expectation(fields: Fields) -> Expectation:
    expected = Expectation(
        turns=fields.whole("turns", 0, 20),
        reply=fields.boolean("reply"),
        must_not_reply_before_ms=(
            fields.whole("must_not_reply_before_ms") if "must_not_reply_before_ms" in fields else None
        ),
        interrupted=fields.boolean("interrupted") if "interrupted" in fields else None,
    )
    if expected.turns and expected.must_not_reply_before_ms is None:
        raise fields.wrong("must_not_reply_before_ms", "missing; give the last voiced ms of the first turn")
    fields.nothing_else()
    return expected


def _leak(fields: Fields) -> Leak:
    leak = Leak(fields.whole("delay_ms", 0, 1000), fields.number("gain_db", -120.0, 0.0))
    fields.nothing_else()
    return leak


def _digest(path: Path, steps: Sequence[Step]) -> str:
    seen = hashlib.sha256(path.read_bytes())
    for step in steps:
        seen.update(step.samples.tobytes())
    return seen.hexdigest()[:16]

"""Make the scenes of `speech-to-speech bench turn --scenes DIR` from `scene_table.yaml`.

    python scripts/make_scenes.py DIR [--debian FOLDER] [--only NAME ...]

Needs the package with its extra `local`. What this machine cannot make is left out, with a word about it: eSpeak NG's
voices need `espeak-ng` on the path; some recorded people are in two packages of Debian, which need not be installed:

    apt-get download pocketsphinx-testdata asterisk-core-sounds-en-wav
    for file in *.deb; do dpkg -x $file FOLDER; done
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import yaml

from scene_sounds import RATE, background, coughs, levels, with_pauses
from scene_voices import Unavailable, Voices
from speech_to_speech.audio.wav import write_wav
from speech_to_speech.bench.questions import VOICED_LEVEL
from speech_to_speech.errors import SpeechToSpeechError
from speech_to_speech.stage_types import Samples

TABLE = Path(__file__).with_name("scene_table.yaml")

LEAD_IN_MS = 600
"""Silence before the first word."""

NOISE_LEAD_IN_MS = 1000
NOISE_TAIL_S = 8.0
"""How long the noise goes on after the last word: until the answer is well under way."""

LEAK_DELAY_MS = 60
"""From the speaker to the microphone, buffers of both included."""

TALKATIVE = "You are a storyteller. Whatever is said to you, tell a story about it in at least eight long sentences."
"""Instructions of the scenes in which the assistant must speak for a while."""

Row: TypeAlias = Mapping[str, Any]
Table: TypeAlias = Mapping[str, Any]


class TableError(Exception):
    """The table contradicts itself."""


@dataclass
class Recipe:
    """The sounds of one scene (file name → samples at 24 kHz) and what its `scene.yaml` says of them."""

    sounds: dict[str, Samples] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)

    def add(self, name: str, sound: Samples, role: str, after: str, ms: int) -> None:
        """`role`: turn, backchannel or noise; it starts `ms` after `after` (start, user_end, assistant_start)."""
        self.sounds[f"{name}.wav"] = sound
        self.steps.append({"wav": f"{name}.wav", "role": role, "at": {"after": after, "ms": ms}})


class SceneMaker:
    """Turns rows of the table into folders."""

    def __init__(self, table: Table, debian: Path | None) -> None:
        self._table = table
        self._speakers = Voices(table["voices"], debian)

    def make(self, row: Row, folder: Path) -> None:
        """Write one scene. Raises `Unavailable` when this machine lacks the voice, `TableError`."""
        split = split_of(self._table, row)
        recipe = Recipe()
        if row["kind"] == "noise":
            self._noise(row, recipe)
        elif "template" in row:
            recipe.add("turn", self._speech(row, row["template"]), "turn", "start", LEAD_IN_MS)
        self._reaction(row, recipe)
        scene: dict[str, Any] = {
            "kind": row["kind"],
            "split": split,
            "voice": row["voice"],
            "template": row.get("template", "none"),
            "real": self._table["voices"][row["voice"]]["engine"] == "recording",
            "seed": row["seed"],
            "steps": recipe.steps,
            "expect": _expectation(row, recipe),
        }
        if row["kind"] in ("backchannel", "interruption", "cough", "leak"):
            scene["instructions"] = TALKATIVE
        if "leak_db" in row:
            scene["leak"] = {"delay_ms": LEAK_DELAY_MS, "gain_db": row["leak_db"]}
        folder.mkdir(parents=True, exist_ok=True)
        for name, sound in recipe.sounds.items():
            write_wav(folder / name, sound, RATE)
        (folder / "scene.yaml").write_text(yaml.safe_dump(scene, sort_keys=False), encoding="utf-8")

    def _speech(self, row: Row, template: str) -> Samples:
        parts = self._speakers.say(row["voice"], self._table["templates"][template]["say"])
        pauses = row.get("pauses_ms", []) if template == row["template"] else []
        return with_pauses(parts, pauses, row["seed"])

    def _noise(self, row: Row, recipe: Recipe) -> None:
        if "template" not in row:
            level = 10 ** (row["level_db"] / 20)
            recipe.add("noise", background(row["noise"], NOISE_TAIL_S, level, row["seed"]), "noise", "start", 0)
            return
        speech = self._speech(row, row["template"])
        loud = levels(speech)
        level = float(np.sqrt(np.mean(loud[loud > VOICED_LEVEL] ** 2))) * 10 ** (-row["snr_db"] / 20)
        seconds = NOISE_LEAD_IN_MS / 1000 + len(speech) / RATE + NOISE_TAIL_S
        recipe.add("noise", background(row["noise"], seconds, level, row["seed"]), "noise", "start", 0)
        recipe.add("turn", speech, "turn", "start", NOISE_LEAD_IN_MS)

    def _reaction(self, row: Row, recipe: Recipe) -> None:
        after, ms = ("assistant_start", row.get("react_ms", 0)) if "template" in row else ("start", LEAD_IN_MS)
        if row["kind"] == "cough":
            recipe.add("cough", coughs(row["coughs"], row["seed"]), "noise", after, ms)
        elif "react" in row:
            role = "turn" if row["kind"] == "interruption" else "backchannel"
            recipe.add("reaction", self._speech(row, row["react"]), role, after, ms)


def scene_name(row: Row) -> str:
    """Unique: the kind, the voice, and what is said (or the seed where nothing is)."""
    return f"{row['kind']}_{row['voice']}_{row.get('template', row['seed'])}"


def split_of(table: Table, row: Row) -> str:
    """ "train" or "heldout". Raises `TableError` when voice and templates disagree."""
    parts = [table["voices"][row["voice"]]]
    parts += [table["templates"][row[key]] for key in ("template", "react") if key in row]
    splits = {part["split"] for part in parts}
    if len(splits) != 1:
        raise TableError(f"{scene_name(row)}: voice and templates are of different splits")
    return str(splits.pop())


def _expectation(row: Row, recipe: Recipe) -> dict[str, Any]:
    turns = [step for step in recipe.steps if step["role"] == "turn"]
    expected: dict[str, Any] = {"turns": len(turns), "reply": bool(turns)}
    if turns:
        voiced = np.flatnonzero(np.abs(recipe.sounds[turns[0]["wav"]]) > VOICED_LEVEL)
        expected["must_not_reply_before_ms"] = int(voiced[-1] * 1000 // RATE)
    if row["kind"] in ("backchannel", "interruption", "cough", "leak") and turns:
        expected["interrupted"] = row["kind"] == "interruption"
    return expected


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when every scene asked for was made, 1 when this machine could not make some of them."""
    parser = argparse.ArgumentParser(description="Make the scenes of 'speech-to-speech bench turn --scenes DIR'.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="one folder per scene is made here")
    parser.add_argument("--debian", type=Path, metavar="FOLDER", help="where Debian's packages were unpacked")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these scenes, such as question_joe_capital")
    options = parser.parse_args(arguments)
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    maker = SceneMaker(table, options.debian)
    rows = [row for row in table["scenes"] if not options.only or scene_name(row) in options.only]
    left_out = 0
    for row in rows:
        try:
            maker.make(row, options.folder / scene_name(row))
        except (Unavailable, SpeechToSpeechError) as error:
            left_out += 1
            print(f"left out {scene_name(row)}: {error}", file=sys.stderr)
    print(f"{len(rows) - left_out} of {len(rows)} scenes are in {options.folder}")
    return 1 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())

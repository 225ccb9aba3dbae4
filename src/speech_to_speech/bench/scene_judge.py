"""What happened in a played scene, against what should have happened. Judged from the recording and the events."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from speech_to_speech.bench.recorded_turn import AUDIBLE_LEVEL
from speech_to_speech.bench.scene_player import PlayedScene
from speech_to_speech.bench.scenes import Scene
from speech_to_speech.client.audio_device import RATE
from speech_to_speech.stage_types import Samples

LATE_MS = 2000
"""An answer later than this after the user's last voiced sample is late."""

SHORTEST_GAP_MS = 10.0
"""Shorter gaps in a reply's playback are not heard."""

HOLD_MS = 1500
"""A gap that begins within this after the user's sound is the server holding its breath, not an underrun."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one played scene. Times in ms; None where a question does not arise.

    `voice_to_voice_ms`: last voiced sample of the user's last turn → first audible sample of its answer; None in a
    scene that was cut off. `cut_off`: a turn was committed, or answered, before the user had finished it. `late`: no
    answer within `LATE_MS`. `stopped`: the assistant fell silent when the user's reaction sounded (where it should
    not: a false stop). `last_byte_ms`, `silence_ms`: from the first voiced sample of an interruption to the last audio
    sent of what it interrupted, and to its last audible sample. `history_words_off`: words in which the history of a
    stopped answer differs from what was heard of it.
    """

    cut_off: bool | None
    voice_to_voice_ms: float | None
    answered: bool | None
    late: bool | None
    unwanted_reply: bool | None
    stopped: bool | None
    last_byte_ms: float | None
    silence_ms: float | None
    history: str | None
    heard: str | None
    history_words_off: int | None
    underruns: int
    underrun_ms: float
    holds: int
    turns: int
    transcript: str
    answer: str


def judge(scene: Scene, played: PlayedScene, transcribe: Callable[[Samples], str]) -> Verdict:
    """`transcribe` tells the words of 24 kHz sound: those of a stopped answer are compared with the history."""
    return _Judge(scene, played).verdict(transcribe)


def words_off(one: str, other: str) -> int:
    """Words to insert, delete or replace (Levenshtein) to turn one text into the other; case and marks aside."""
    first, second = (re.findall(r"[\w']+", text.lower()) for text in (one, other))
    row = list(range(len(second) + 1))
    for i, word in enumerate(first, 1):
        previous, row[0] = row[0], i
        for j, candidate in enumerate(second, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (word != candidate))
    return row[-1]


class _Judge:
    def __init__(self, scene: Scene, played: PlayedScene) -> None:
        self._scene = scene
        self._played = played
        self._audible = np.flatnonzero(np.abs(played.assistant) > AUDIBLE_LEVEL) / RATE * 1000
        self._items: dict[str, float] = {}
        """When the first audio of each of the assistant's items came."""
        for timed in played.events:
            if timed.event["type"] == "response.output_audio.delta":
                self._items.setdefault(timed.event["item_id"], timed.ms)

    def verdict(self, transcribe: Callable[[Samples], str]) -> Verdict:
        expect = self._scene.expect
        stop_ms, stopped_item = self._stop()
        stopped = self._stopped(stop_ms)
        cut_off = self._cut_off()
        wait = self._wait(cut_off, stopped, stop_ms)
        asked = expect.reply and cut_off is False and not self._ignored(stopped)
        history, heard = self._words(stop_ms, stopped_item, transcribe) if stopped else (None, None)
        gaps = [gap for gap in self._played.gaps if gap.duration_ms >= SHORTEST_GAP_MS]
        underruns = [gap for gap in gaps if not self._is_hold(gap.start_ms)]
        return Verdict(
            cut_off=cut_off,
            voice_to_voice_ms=wait,
            answered=(wait is not None) if asked else None,
            late=(wait is None or wait > LATE_MS) if asked else None,
            unwanted_reply=None if expect.reply else bool(len(self._audible)),
            stopped=stopped,
            last_byte_ms=self._last_byte(stopped_item) if stopped else None,
            silence_ms=self._silence(stop_ms) if stopped else None,
            history=history,
            heard=heard,
            history_words_off=None if history is None or heard is None else words_off(history, heard),
            underruns=len(underruns),
            underrun_ms=sum(gap.duration_ms for gap in underruns),
            holds=len(gaps) - len(underruns),
            turns=len(self._times("input_audio_buffer.committed")),
            transcript=" ".join(self._texts("conversation.item.input_audio_transcription.completed")),
            answer=" | ".join(self._texts("response.output_audio_transcript.done")),
        )

    # --- turns ------------------------------------------------------------------------------------------------

    def _cut_off(self) -> bool | None:
        """Whether a turn was committed, or a new item of the assistant sent, while the user was not done with it."""
        began = [*self._times("input_audio_buffer.committed"), *self._items.values()]
        spans = [self._span(index) for index, step in enumerate(self._scene.steps) if step.role == "turn"]
        known = [span for span in spans if span is not None]
        if not known:
            return None
        return any(start < ms < end for start, end in known for ms in began)

    def _span(self, index: int) -> tuple[float, float] | None:
        """When the user's turn of that step began and ended."""
        start, step = self._played.step_starts_ms[index], self._scene.steps[index]
        if start is None:
            return None
        end = step.voiced_ms[1]
        if index == self._scene.first_turn and self._scene.expect.must_not_reply_before_ms is not None:
            end = self._scene.expect.must_not_reply_before_ms
        return start + step.voiced_ms[0], start + end

    def _wait(self, cut_off: bool | None, stopped: bool | None, stop_ms: float) -> float | None:
        index = self._scene.last_turn
        if index is None or cut_off or self._ignored(stopped):
            return None
        start = self._played.step_starts_ms[index]
        if start is None:
            return None
        end = start + self._scene.steps[index].voiced_ms[1]
        interrupted = self._scene.expect.interrupted and stopped
        after = self._audible[self._audible >= (max(end, stop_ms) if interrupted else end)]
        return float(after[0]) - end if len(after) else None

    # --- interruptions ----------------------------------------------------------------------------------------

    @property
    def _onset(self) -> float | None:
        """When the user's reaction sounds; without one (a leak), when the user's turn is over."""
        index = self._scene.reaction
        if index is None:
            span = self._span(self._scene.first_turn) if self._scene.first_turn is not None else None
            return None if span is None else span[1]
        start = self._played.step_starts_ms[index]
        return None if start is None else start + self._scene.steps[index].voiced_ms[0]

    def _ignored(self, stopped: bool | None) -> bool:
        """Whether the assistant talked on over an interruption: what it says is no answer to that."""
        return self._scene.expect.interrupted is True and stopped is False

    def _stop(self) -> tuple[float, str]:
        """When the client stopped playing after the onset, and which item; infinity for never."""
        for timed in self._played.events:
            if timed.event["type"] == "conversation.item.truncate" and timed.ms >= (self._onset or 0):
                return timed.ms, timed.event["item_id"]
        return float("inf"), ""

    def _stopped(self, stop_ms: float) -> bool | None:
        onset = self._onset
        if self._scene.expect.interrupted is None or onset is None:
            return None
        if stop_ms < float("inf"):
            return True
        following = float("inf")
        if self._scene.reaction is not None:  # what was being said then goes on until the next item begins
            following = min((start for start in self._items.values() if start > onset), default=following)
        went_on = (self._audible >= onset) & (self._audible < following)
        return False if went_on.any() else None

    def _last_byte(self, item: str) -> float | None:
        times = [
            timed.ms
            for timed in self._played.events
            if timed.event["type"] == "response.output_audio.delta" and timed.event["item_id"] == item
        ]
        return None if self._onset is None or not times else max(0.0, times[-1] - self._onset)

    def _silence(self, stop_ms: float) -> float | None:
        """The last audible sample of the stopped item: the last one before the next item begins."""
        following = [start for start in self._items.values() if start > stop_ms]
        heard = self._audible[self._audible < min(following, default=float("inf"))]
        return None if self._onset is None or not len(heard) else max(0.0, float(heard[-1]) - self._onset)

    def _words(self, stop_ms: float, item: str, transcribe: Callable[[Samples], str]) -> tuple[str | None, str | None]:
        """The history's words of the stopped item, and those that were heard of it."""
        for timed in self._played.events:
            event = timed.event
            if event["type"] == "conversation.item.retrieved" and event["item"]["id"] == item:
                history = " ".join(part.get("transcript") or "" for part in event["item"]["content"]).strip()
                start, end = (int(ms * RATE / 1000) for ms in (self._items[item], stop_ms))
                return history, transcribe(self._played.assistant[start:end])
        return None, None

    # --- events -----------------------------------------------------------------------------------------------

    def _is_hold(self, ms: float) -> bool:
        index = self._scene.reaction
        start = self._played.step_starts_ms[index] if index is not None else None
        return start is not None and start <= ms <= start + self._scene.steps[index or 0].duration_ms + HOLD_MS

    def _times(self, kind: str) -> list[float]:
        return [timed.ms for timed in self._played.events if timed.event["type"] == kind]

    def _texts(self, kind: str) -> Sequence[str]:
        return [timed.event["transcript"] for timed in self._played.events if timed.event["type"] == kind]

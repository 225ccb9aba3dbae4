from __future__ import annotations

from speech_to_speech.client.speaker_reference import WINDOW_BLOCKS, SpeakerReference

SILENCE = bytes(960)


def block(number: int) -> bytes:
    return number.to_bytes(2, "little") * 480


def number_of(played: bytes) -> int | None:
    return None if played == SILENCE else int.from_bytes(played[:2], "little")


class Room:
    """Speaker and microphone, called by hand; blocks are numbered from 1."""

    def __init__(self, slack: int) -> None:
        self._reference = SpeakerReference(slack)
        self._last = 0

    def speak(self, count: int = 1) -> None:
        for _ in range(count):
            self._last += 1
            self._reference.played(block(self._last))

    def hear(self, count: int = 1) -> list[int | None]:
        return [number_of(self._reference.next()) for _ in range(count)]

    def pass_time(self, blocks: int) -> int | None:
        """Both at their pace; returns how many blocks the speaker is ahead at the end."""
        heard: int | None = None
        for _ in range(blocks):
            self.speak()
            (heard,) = self.hear()
        return None if heard is None else self._last - heard


def test_blocks_come_out_one_for_one() -> None:
    room = Room(slack=1)
    room.speak()
    assert room.hear() == [1]
    room.speak()
    assert room.hear() == [2]


def test_what_the_speaker_took_before_the_microphone_began_is_dropped_down_to_the_slack() -> None:
    room = Room(slack=2)
    room.speak(6)
    assert room.hear() == [5]


def test_a_speaker_that_runs_dry_leaves_silence() -> None:
    room = Room(slack=1)
    room.speak()
    assert room.hear(3) == [1, None, None]


def test_a_microphone_that_stalls_finds_the_blocks_of_that_time() -> None:
    room = Room(slack=2)
    room.pass_time(10)
    room.speak(WINDOW_BLOCKS // 2)
    assert room.hear(WINDOW_BLOCKS // 2) == list(range(11, 11 + WINDOW_BLOCKS // 2))
    assert room.pass_time(2 * WINDOW_BLOCKS) == 0


def test_a_surplus_that_stays_is_dropped_down_to_the_slack() -> None:
    room = Room(slack=2)
    room.pass_time(10)
    room.speak(7)  # and the microphone lost what it heard meanwhile
    assert room.pass_time(1) == 7
    assert room.pass_time(2 * WINDOW_BLOCKS) == 2 - 1  # of the two that wait, the older one has just come out

"""Scenes played to a scripted server over a real WebSocket, on a virtual clock: 20 ms per block."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np

from client.scripted_realtime_server import (
    Script,
    ScriptedServer,
    VirtualTime,
    audio,
    response_created,
    response_done,
    serving,
    speech_started,
    turn_ended,
)
from speech_to_speech.bench.playback_gaps import Gap
from speech_to_speech.bench.scene_player import LISTEN_MS, SETTLING_MS, PlayedScene, play_scene
from speech_to_speech.bench.scenes import ROOM_LEVEL, Expectation, Leak, Role, Scene, Step

RATE = 24_000
SPOKEN_MS = 400


def step(after: str = "start", offset_ms: int = 100, role: Role = "turn", level: float = 0.5) -> Step:
    samples = np.full(24 * SPOKEN_MS, level, np.float32)
    return Step("turn.wav", samples, role, after, offset_ms)  # type: ignore[arg-type]


def scene(*steps: Step, reply: bool = True, interrupted: bool | None = None, leak: Leak | None = None) -> Scene:
    turns = sum(one.role == "turn" for one in steps)
    expect = Expectation(turns, reply, SPOKEN_MS if turns else None, interrupted)
    return Scene("one", "question", "train", "joe", "capital", False, 1, steps, expect, leak, None, "0")


def play(played: Scene, script: Script) -> PlayedScene:
    async def run() -> PlayedScene:
        async with serving(script) as server:
            time = VirtualTime(server)
            session = {"audio": {"input": {"transcription": {"model": "default"}}}}
            playing = play_scene(server.url, played, session, observer=time.observe, clock=time.clock, sleep=time.sleep)
            return await asyncio.wait_for(playing, 60)

    return asyncio.run(run())


async def turn(server: ScriptedServer, heard_ms: float, number: int = 1) -> None:
    """At `heard_ms` the user's turn is over and a reply of that number is made."""
    await server.heard(heard_ms)
    await server.send(speech_started(f"user_{number}"))
    await server.send(*turn_ended(f"user_{number}", "Who are you?"), response_created(f"resp_{number}"))


async def one_second_answer(server: ScriptedServer) -> None:
    await turn(server, 1000)
    await server.send(audio("resp_1", "item_1", 1000), response_done("resp_1"))


def audible(samples: np.ndarray) -> np.ndarray:
    """Milliseconds of the first and the last loud sample."""
    loud = np.flatnonzero(np.abs(samples) > 0.05)
    return loud[[0, -1]] / 24


def test_both_sides_are_recorded_at_the_time_they_sound() -> None:
    played = play(scene(step()), one_second_answer)
    assert played.step_starts_ms == (100,)
    assert len(played.user) == len(played.assistant)
    np.testing.assert_allclose(audible(played.user), (100, 500), atol=1)
    np.testing.assert_allclose(audible(played.assistant), (1000, 2000), atol=1)
    assert len(played.assistant) / 24 == 2000 + SETTLING_MS


def test_the_room_is_never_digitally_silent() -> None:
    played = play(scene(step()), one_second_answer)
    room = played.user[RATE * 3 : RATE * 4]
    assert abs(float(np.sqrt(np.mean(room**2))) - ROOM_LEVEL) < 0.1 * ROOM_LEVEL


def test_a_step_after_the_assistants_start_waits_for_its_first_audible_sample() -> None:
    async def script(server: ScriptedServer) -> None:
        await turn(server, 1000)
        await server.send(audio("resp_1", "item_1", 5000), response_done("resp_1"))

    played = play(scene(step(), step("assistant_start", 1500, "backchannel"), interrupted=False), script)
    assert played.step_starts_ms == (100, 2500)


def test_a_step_that_waits_in_vain_has_no_start() -> None:
    async def deaf(server: ScriptedServer) -> None:
        await server.heard(float("inf"))

    played = play(scene(step(), step("assistant_start"), interrupted=True), deaf)
    assert played.step_starts_ms == (100, None)


async def interrupted_answer(server: ScriptedServer) -> None:
    """An answer from 1000 ms on is stopped at 3000 ms; another follows at 3500 ms."""
    await turn(server, 1000)
    await server.send(audio("resp_1", "item_1", 6000))
    await server.heard(3000)
    await server.send(speech_started("user_2"), response_done("resp_1", "cancelled"))
    await server.send(audio("resp_1", "item_1", 500))
    await server.heard(3500)
    await server.send(*turn_ended("user_2", "Stop."), response_created("resp_2"))
    await server.send(audio("resp_2", "item_2", 600), response_done("resp_2"))


def test_speech_started_flushes_what_was_to_be_played_and_tells_how_much_was_heard() -> None:
    played = play(scene(step(), step("assistant_start", 1500), interrupted=True), interrupted_answer)
    silent = played.assistant[24 * 3000 : 24 * 3500]
    assert not silent.any()
    sent = [timed.event for timed in played.events if timed.direction == "out"]
    truncate = next(event for event in sent if event["type"] == "conversation.item.truncate")
    assert (truncate["item_id"], truncate["audio_end_ms"]) == ("item_1", 2000)
    assert sent[-1] == {"type": "conversation.item.retrieve", "item_id": "item_1"}
    assert played.gaps == (), "what is cut off leaves no gap"


def test_events_carry_the_recordings_time_and_the_length_of_audio_in_its_place() -> None:
    played = play(scene(step()), one_second_answer)
    delta = next(timed for timed in played.events if timed.event["type"] == "response.output_audio.delta")
    assert (delta.ms, delta.event["audio_ms"]) == (1000, 1000)
    assert "delta" not in delta.event


def test_a_stall_in_the_middle_of_an_item_is_a_gap() -> None:
    async def script(server: ScriptedServer) -> None:
        await turn(server, 1000)
        await server.send(audio("resp_1", "item_1", 310))
        await server.heard(1500)
        await server.send(audio("resp_1", "item_1", 300), response_done("resp_1"))

    assert play(scene(step()), script).gaps == (Gap(1310, 190),)


def test_a_stall_that_ends_in_an_interruption_is_a_gap_too() -> None:
    async def script(server: ScriptedServer) -> None:
        await turn(server, 1000)
        await server.send(audio("resp_1", "item_1", 1600))
        await server.heard(3000)
        await server.send(speech_started("user_2"), response_done("resp_1", "cancelled"))
        await server.send(*turn_ended("user_2", ""))

    assert play(scene(step(), step("assistant_start", 1500), interrupted=True), script).gaps == (Gap(2600, 400),)


def test_a_leak_brings_the_assistants_voice_into_the_microphone_later_and_softer() -> None:
    played = play(scene(step(), leak=Leak(60, -20.0)), one_second_answer)
    leaked = np.flatnonzero(played.user[24 * 600 :] > 0.0125 - 6 * ROOM_LEVEL) / 24 + 600
    np.testing.assert_allclose(leaked[[0, -1]], (1060, 2060), atol=1)
    assert abs(float(played.user[24 * 1500 : 24 * 1600].mean()) - 0.0125) < 0.001, "0.125 played, 20 dB down"


def test_of_a_long_answer_only_the_beginning_is_listened_to() -> None:
    async def script(server: ScriptedServer) -> None:
        await turn(server, 1000)
        await server.send(audio("resp_1", "item_1", 60_000), response_done("resp_1"))

    assert len(play(scene(step()), script).assistant) / 24 == 1000 + LISTEN_MS


def test_after_a_false_stop_nothing_more_is_waited_for() -> None:
    async def script(server: ScriptedServer) -> None:
        await turn(server, 1000)
        await server.send(audio("resp_1", "item_1", 60_000))
        await server.heard(3000)
        await server.send(speech_started("user_2"), response_done("resp_1", "cancelled"))

    played = play(scene(step(), step("assistant_start", 1500, "backchannel"), interrupted=False), script)
    assert len(played.assistant) / 24 == 3000 + SETTLING_MS


def test_a_noise_that_nobody_answers_is_soon_over() -> None:
    async def deaf(server: ScriptedServer) -> None:
        await server.heard(float("inf"))

    played = play(replace(scene(step(role="noise"), reply=False)), deaf)
    assert len(played.user) / 24 == 500 + SETTLING_MS

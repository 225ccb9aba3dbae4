"""Conversations with a scripted server over a real WebSocket, on a virtual clock: 20 ms per block."""

from __future__ import annotations

import asyncio
import base64
import io
from dataclasses import dataclass

import numpy as np
import pytest

from client.scripted_realtime_server import (
    Script,
    ScriptedServer,
    VirtualTime,
    audio,
    failed_response,
    response_created,
    response_done,
    serving,
    speech_started,
    turn_ended,
    words,
)
from speech_to_speech.client.dialogue import Dialogue
from speech_to_speech.client.file_device import FileDevice
from speech_to_speech.client.realtime_client import connect
from speech_to_speech.client.recording import Recording
from speech_to_speech.client.screen import Screen

QUESTION_MS = 400


@dataclass
class Held:
    """A conversation that was held."""

    error: str
    recorded_ms: float
    shown: str
    server: ScriptedServer


def hold(
    script: Script, *, timeout_s: float = 2.0, instructions: str | None = None, show_waterfall: bool = False
) -> Held:
    async def conversation() -> Held:
        async with serving(script) as server:
            time = VirtualTime(server)
            device = FileDevice(np.full(24 * QUESTION_MS, 0.1, np.float32), clock=time.clock, sleep=time.sleep)
            recording, shown = Recording(), io.StringIO()
            async with connect(server.url, time.observe) as client:
                dialogue = Dialogue(
                    client,
                    device,
                    Screen(shown),
                    recording,
                    instructions=instructions,
                    timeout_s=timeout_s,
                    show_waterfall=show_waterfall,
                )
                error = await asyncio.wait_for(dialogue.run(), 20)
            return Held(error, recording.duration_s * 1000, shown.getvalue(), server)

    return asyncio.run(conversation())


async def ask(server: ScriptedServer) -> None:
    """The user's question is heard and understood; the reply begins with 1 s of audio, sent at once at 600 ms."""
    await server.heard(200)
    await server.send(speech_started("item_u"))
    await server.heard(600)
    await server.send(*turn_ended("item_u", "Who are you?"), response_created("resp_1"))
    await server.send(words("resp_1", "item_a", "I am"), audio("resp_1", "item_a", 1000))


async def answer(server: ScriptedServer) -> None:
    await ask(server)
    await server.send(words("resp_1", "item_a", " a test."), response_done("resp_1"))


def test_a_reply_is_shown_and_recorded_to_its_last_sample() -> None:
    held = hold(answer)
    assert (held.error, held.recorded_ms) == ("", 1000)
    assert held.shown.splitlines()[:2] == ["you: Who are you?", "assistant: I am a test."]


def test_the_file_is_sent_whole_and_then_silence_until_the_end() -> None:
    held = hold(answer)
    # 600 ms until the reply comes and 1000 ms to play it; the block in which its last sample sounds is not sent.
    assert held.server.heard_ms == 1600 - 20
    first, last = (base64.b64decode(held.server.events("input_audio_buffer.append")[i]["audio"]) for i in (0, 20))
    assert (any(first), any(last)) == (True, False)


def test_transcripts_are_asked_for_and_instructions_passed_on_before_any_audio() -> None:
    held = hold(answer, instructions="Be brief.")
    first = held.server.received[0]
    assert first["type"] == "session.update"
    assert first["session"]["type"] == "realtime"
    assert first["session"]["instructions"] == "Be brief."
    assert first["session"]["audio"]["input"]["transcription"]["model"]


def test_without_instructions_the_servers_own_stay() -> None:
    assert "instructions" not in hold(answer).server.received[0]["session"]


def test_a_stalled_reply_is_recorded_with_its_gap() -> None:
    async def script(server: ScriptedServer) -> None:
        await ask(server)  # plays from 600 to 1600 ms
        await server.heard(2000)
        await server.send(audio("resp_1", "item_a", 100), response_done("resp_1"))

    assert hold(script).recorded_ms == 1000 + 400 + 100


def test_the_pause_between_two_replies_is_not_recorded() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(100)
        await server.send(response_created("resp_0"), audio("resp_0", "item_0", 100), response_done("resp_0"))
        await answer(server)

    assert hold(script).recorded_ms == 100 + 1000


def test_talking_over_a_reply_stops_it_and_tells_the_server_what_was_heard() -> None:
    async def script(server: ScriptedServer) -> None:
        await ask(server)
        await server.heard(900)  # 15 blocks of 20 ms after the audio was sent
        await server.send(speech_started("item_v"))
        await server.send(response_done("resp_1", "cancelled"))
        await server.heard(1400)
        await server.send(*turn_ended("item_v", "Stop."), response_created("resp_2"))
        await server.send(audio("resp_2", "item_b", 200), response_done("resp_2"))

    held = hold(script)
    truncated = held.server.events("conversation.item.truncate")
    assert truncated == [
        {"type": "conversation.item.truncate", "item_id": "item_a", "content_index": 0, "audio_end_ms": 300}
    ]
    assert (held.error, held.recorded_ms) == ("", 300 + 200)
    assert "(interrupted after 0.3 s)" in held.shown


def test_audio_of_an_interrupted_reply_that_comes_late_is_not_played() -> None:
    async def script(server: ScriptedServer) -> None:
        await ask(server)
        await server.heard(900)
        await server.send(speech_started("item_v"), audio("resp_1", "item_a", 500))
        await server.send(response_done("resp_1", "cancelled"), *turn_ended("item_v", ""))

    assert hold(script).recorded_ms == 300


def test_a_reply_cancelled_by_the_server_stops_and_is_truncated() -> None:
    async def script(server: ScriptedServer) -> None:
        await ask(server)
        await server.heard(700)
        await server.send(response_done("resp_1", "cancelled"))

    held = hold(script)
    assert [event["audio_end_ms"] for event in held.server.events("conversation.item.truncate")] == [100]
    assert held.recorded_ms == 100


def test_speech_after_a_reply_was_played_truncates_nothing() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(100)
        await server.send(response_created("resp_0"), audio("resp_0", "item_0", 100), response_done("resp_0"))
        await server.heard(300)
        await answer(server)

    assert hold(script).server.events("conversation.item.truncate") == []


def test_a_failed_response_ends_with_the_servers_error() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(500)
        await server.send(*turn_ended("item_u", "Hello"), response_created("resp_1"))
        await server.send(*failed_response("resp_1", "tts: out of breath"))

    held = hold(script)
    assert held.error == "tts: out of breath"
    assert held.server.heard_ms < 1500


def test_a_failed_transcription_ends_with_the_servers_error() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(300)
        await server.send(speech_started("item_u"))
        await server.send(
            {
                "type": "conversation.item.input_audio_transcription.failed",
                "item_id": "item_u",
                "content_index": 0,
                "error": {"type": "server_error", "message": "stt: deaf"},
            }
        )

    held = hold(script)
    assert held.error == "stt: deaf"
    assert held.server.heard_ms < 1500


def test_an_error_event_and_no_reply_ends_with_that_error_when_time_is_up() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.send({"type": "error", "error": {"type": "server_error", "message": "no model"}})

    held = hold(script)
    assert held.error == "no model"
    assert "server error: no model" in held.shown


def test_an_error_event_beside_a_good_reply_is_shown_and_no_failure() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.send({"type": "error", "error": {"type": "invalid_request_error", "message": "no such model"}})
        await answer(server)

    held = hold(script)
    assert held.error == ""
    assert "server error: no such model" in held.shown


def test_silence_from_the_server_ends_when_time_is_up() -> None:
    async def script(_server: ScriptedServer) -> None:
        pass

    held = hold(script)
    assert held.error == "no reply within 2 s: the server heard no speech"
    assert held.server.heard_ms == QUESTION_MS + 2000


def test_a_question_without_an_answer_is_named_when_time_is_up() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(200)
        await server.send(speech_started("item_u"), *turn_ended("item_u", " Who are you?"))

    assert hold(script).error == "no reply within 2 s to: Who are you?"


def test_a_reply_longer_than_the_timeout_is_heard_to_its_end() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(500)
        await server.send(response_created("resp_1"), audio("resp_1", "item_a", 3000), response_done("resp_1"))

    held = hold(script, timeout_s=1.0)
    assert (held.error, held.recorded_ms) == ("", 3000)


def test_a_reply_in_text_alone_is_an_answer() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(500)
        place = {"response_id": "resp_1", "item_id": "item_a", "output_index": 0, "content_index": 0}
        await server.send(response_created("resp_1"))
        await server.send({"type": "response.output_text.delta", **place, "delta": "Paris."})
        await server.send({"type": "response.output_text.done", **place, "text": "Paris."}, response_done("resp_1"))

    held = hold(script)
    assert (held.error, held.recorded_ms) == ("", 0)
    assert "assistant: Paris.\n" in held.shown


def test_a_response_without_sound_and_text_is_no_answer() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(500)
        await server.send(response_created("resp_1"), response_done("resp_1"))

    assert hold(script).error == "the response was empty"


def test_a_noise_after_the_answer_that_means_nothing_does_not_keep_the_conversation_open() -> None:
    async def script(server: ScriptedServer) -> None:
        await answer(server)
        await server.heard(1100)
        await server.send(speech_started("item_v"), *turn_ended("item_v", ""))

    held = hold(script, timeout_s=5.0)
    assert held.error == ""
    assert held.server.heard_ms < 2000


def test_a_server_that_hangs_up_is_named() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(300)
        await server.hang_up(1011)

    assert hold(script).error == "the server closed the connection (code 1011)"


def test_a_refusal_before_hanging_up_is_the_error() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.send({"type": "error", "error": {"type": "invalid_request_error", "message": "all taken"}})
        await server.hang_up(4000)

    assert hold(script).error == "all taken"


def test_the_servers_timeline_is_shown() -> None:
    async def script(server: ScriptedServer) -> None:
        await ask(server)
        await server.send(response_done("resp_1", timeline={"turn_end_ms": 350.0, "first_audible_ms": 366.2}))

    assert "  366 ms from your last word to the first sound (end of turn decided 350)\n" in hold(script).shown
    assert "\n366 ms from your last word to the first sound:\n  end of turn" in hold(script, show_waterfall=True).shown


def test_without_a_timeline_the_time_from_turn_end_to_audio_is_told() -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(500)
        await server.send(*turn_ended("item_u", "Hello"), response_created("resp_1"))
        await server.heard(740)
        await server.send(audio("resp_1", "item_a", 100), response_done("resp_1"))

    assert "  240 ms from the end of the turn to the first audio\n" in hold(script).shown


@pytest.mark.parametrize("garbage", ["not json", "[]", '{"no": "type"}'])
def test_what_is_no_realtime_server_is_said_so(garbage: str) -> None:
    async def script(server: ScriptedServer) -> None:
        await server.heard(100)
        await server._socket.send_str(garbage)

    with pytest.raises(Exception, match="no Realtime server"):
        hold(script)

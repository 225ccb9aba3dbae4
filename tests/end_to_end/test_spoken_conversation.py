"""Real speech, real models, a real server: what a user would hear."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from live_server import RATE, LiveClient, LiveServer, talk
from scene_sounds import coughs
from sounds import hum, music, noise

Say = Callable[[str], NDArray[np.float32]]
Heard = Callable[[NDArray[np.float32]], str]

CAPITAL = "What is the capital of France?"


def test_a_spoken_question_is_answered_aloud(server: LiveServer, say: Say, heard: Heard) -> None:
    async def conversation(client: LiveClient) -> None:
        client.speak(say(CAPITAL))
        await client.until_count("response.done")

    client = asyncio.run(talk(server, conversation))

    assert "capital of france" in client.transcripts()[0].lower()
    assert "Paris" in client.answers()[0]
    assert "paris" in heard(client.audio())


def test_the_second_question_is_understood_from_the_first(server: LiveServer, say: Say) -> None:
    async def conversation(client: LiveClient) -> None:
        client.speak(say("The name of my dog is Rex."))
        await client.until_count("response.done")
        client.speak(say("What is the name of my dog?"))
        await client.until_count("response.done", 2)

    client = asyncio.run(talk(server, conversation))

    name = client.transcripts()[0].split()[-1].strip(".,!?").lower()  # as it was understood
    assert name in client.answers()[1].lower()


@pytest.mark.parametrize("sound", [coughs, noise, hum, music], ids=lambda sound: sound.__name__)
def test_a_sound_that_says_nothing_gets_no_answer(server: LiveServer, sound: Callable[[], NDArray[np.float32]]) -> None:
    async def conversation(client: LiveClient) -> None:
        client.speak(sound())
        await asyncio.sleep(len(sound()) / RATE + 4)

    client = asyncio.run(talk(server, conversation))

    assert client.of_type("response.created") == []


def test_speaking_into_the_answer_stops_it_and_is_answered(server: LiveServer, say: Say) -> None:
    async def conversation(client: LiveClient) -> None:
        client.speak(say("Please count slowly from one to thirty, one number after the other."))
        await client.until_count("response.output_audio.delta", 8)
        client.speak(say(CAPITAL))
        await client.until_count("response.done", 2)

    client = asyncio.run(talk(server, conversation))

    first, second = client.of_type("response.done")
    assert first["response"]["status"] in ("cancelled", "completed")
    assert second["response"]["status"] == "completed"
    assert "Paris" in client.answers()[-1]


def test_two_people_at_once_do_not_hear_each_other(server: LiveServer, say: Say) -> None:
    async def ask(question: str, dropped_first: asyncio.Event | None = None) -> LiveClient:
        async def conversation(client: LiveClient) -> None:
            client.speak(say(question))
            await client.until_count("response.done")

        return await talk(server, conversation)

    async def both() -> tuple[LiveClient, LiveClient]:
        return await asyncio.gather(ask(CAPITAL), ask("How many days are in a week?"))

    first, second = asyncio.run(both())

    assert "france" in first.transcripts()[0].lower() and "Paris" in first.answers()[0]
    assert "week" in second.transcripts()[0].lower()
    assert "seven" in second.answers()[0].lower() or "7" in second.answers()[0]
    everything_second_heard = " ".join(second.transcripts() + second.answers()).lower()
    assert "france" not in everything_second_heard and "paris" not in everything_second_heard


def test_dropping_one_conversation_mid_answer_does_not_disturb_the_other(server: LiveServer, say: Say) -> None:
    async def leaves(client: LiveClient) -> None:
        client.speak(say("Please count slowly from one to thirty."))
        await client.until_count("response.output_audio.delta", 2)

    async def stays(client: LiveClient) -> None:
        client.speak(say(CAPITAL))
        await client.until_count("response.done")

    async def both() -> LiveClient:
        _, staying = await asyncio.gather(talk(server, leaves), talk(server, stays))
        return staying

    staying = asyncio.run(both())

    assert "Paris" in staying.answers()[0]
    assert staying.of_type("error") == []


def test_the_stock_asynchronous_client_holds_a_spoken_conversation(server: LiveServer, say: Say) -> None:
    from openai import AsyncOpenAI

    async def conversation() -> tuple[str, str, bytes]:
        openai = AsyncOpenAI(base_url=server.base_url, api_key="unused")
        async with openai.realtime.connect(model="any") as connection:
            await connection.session.update(
                session={"type": "realtime", "audio": {"input": {"transcription": {"model": "default"}}}}
            )

            async def microphone() -> None:
                for block in _blocks(say(CAPITAL)):
                    await connection.input_audio_buffer.append(audio=block)
                    await asyncio.sleep(0.02)

            streaming = asyncio.create_task(microphone())
            transcript, answer, audio = "", "", b""
            async for event in connection:
                if event.type == "conversation.item.input_audio_transcription.completed":
                    transcript = event.transcript
                elif event.type == "response.output_audio.delta":
                    audio += base64.b64decode(event.delta)
                elif event.type == "response.output_audio_transcript.done":
                    answer = event.transcript
                elif event.type == "response.done":
                    break
            streaming.cancel()
            return transcript, answer, audio

    transcript, answer, audio = asyncio.run(conversation())

    assert "capital of france" in transcript.lower()
    assert "Paris" in answer
    assert len(audio) > RATE  # more than half a second


def test_the_stock_synchronous_client_holds_a_spoken_conversation(server: LiveServer, say: Say) -> None:
    from openai import OpenAI

    with OpenAI(base_url=server.base_url, api_key="unused").realtime.connect(model="any") as connection:
        spoken = threading.Event()

        def microphone() -> None:
            for block in _blocks(say(CAPITAL)):
                if spoken.wait(0.02):
                    return
                connection.input_audio_buffer.append(audio=block)

        streaming = threading.Thread(target=microphone)
        streaming.start()
        answer = ""
        for event in connection:
            if event.type == "response.output_audio_transcript.done":
                answer = event.transcript
            elif event.type == "response.done":
                break
        spoken.set()
        streaming.join()

    assert "Paris" in answer


def _blocks(speech: NDArray[np.float32]) -> list[str]:
    """20 ms blocks of base64 PCM16, with the ten seconds of silence that a microphone would go on to bring."""
    samples = np.concatenate([speech, np.zeros(10 * RATE, np.float32)])
    pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
    size = RATE // 50 * 2
    return [base64.b64encode(pcm[start : start + size]).decode() for start in range(0, len(pcm), size)]

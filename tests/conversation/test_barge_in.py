"""Interruptions on a virtual clock: pause at once, cancel when it is one, go on when it is not."""

from __future__ import annotations

import time

import pytest

from virtual_session import MS_PER_CHARACTER, Said, VirtualSession

QUESTION = Said(0.5, 2.0, "Tell me something long, please.")
ANSWER = "One two three four five six seven. Eight nine ten eleven twelve thirteen fourteen fifteen."
"""35 + 54 characters; the scripted voice takes 50 ms for each, so the first clause lasts 1.7 s."""


def _interrupted(onset: float, text: str = "Wait, stop that now please", seconds: float = 1.2) -> VirtualSession:
    script = [QUESTION, Said(onset, onset + seconds, text)]
    return VirtualSession(script, answer=lambda messages: ANSWER if len(messages) < 4 else "All right.")


def test_an_interruption_cancels_the_reply_and_is_answered() -> None:
    session = _interrupted(4.0).run(12)

    first, second = session.of_type("response.done")
    assert first["response"]["status"] == "cancelled"
    assert first["response"]["status_details"]["reason"] == "turn_detected"
    assert second["response"]["status"] == "completed"
    assert [role for role, _ in session.conversation()] == ["user", "assistant", "user", "assistant"]


def test_sending_stops_at_the_onset_of_the_interruption() -> None:
    onset = 4.0
    session = _interrupted(onset).run(12)

    first_response = session.of_type("response.created")[0]["response"]["id"]
    last_audio = max(
        time
        for time, event in session.events
        if event["type"] == "response.output_audio.delta" and event["response_id"] == first_response
    )
    two_frames, transport = 0.064, 0.040
    assert last_audio <= onset + two_frames + transport


def test_speech_started_comes_before_the_cancelled_response_is_done() -> None:
    kinds = _interrupted(4.0).run(12).types()

    second_start = [i for i, kind in enumerate(kinds) if kind == "input_audio_buffer.speech_started"][1]
    assert second_start < kinds.index("response.done")


@pytest.mark.parametrize(
    ("heard_ms", "heard"),
    [
        # The first clause is "One two three four five six seven." (34 characters, 1,700 ms of sound): a word has
        # been heard when its last character has, at 50 ms per character.
        (149, ""),
        (150, "One"),  # ends at character 3
        (349, "One"),
        (350, "One two"),  # 7
        (650, "One two three"),  # 13
        (900, "One two three four"),  # 18
        (1149, "One two three four"),
        (1150, "One two three four five"),  # 23
        (1350, "One two three four five six"),  # 27
        (1699, "One two three four five six"),
        (1700, "One two three four five six seven."),  # 34
    ],
)
def test_history_keeps_the_answer_up_to_the_last_word_played(heard_ms: int, heard: str) -> None:
    """A client that cancels after so much playback: the clock of the voice is the table worked out by hand."""
    assert MS_PER_CHARACTER == 50
    rehearsal = VirtualSession([QUESTION], answer=lambda messages: ANSWER).run(6)
    first_audio = rehearsal.times("response.output_audio.delta")[0]
    session = VirtualSession([QUESTION], answer=lambda messages: ANSWER)
    session.at(first_audio + heard_ms / 1000 + 1e-6, lambda: session.send({"type": "response.cancel"}))
    session.run(6)

    assert dict(session.conversation())["assistant"] == heard


@pytest.mark.parametrize("sound", ["", "Mm-hmm.", "Yeah.", "Uh-huh, right."])
def test_a_cough_or_a_backchannel_does_not_end_the_answer(sound: str) -> None:
    session = _interrupted(4.0, sound, seconds=0.45).run(16)

    assert [event["response"]["status"] for event in session.of_type("response.done")] == ["completed"]
    assert dict(session.conversation())["assistant"] == ANSWER
    assert len(session.of_type("input_audio_buffer.speech_started")) == 1


def test_after_a_backchannel_sending_goes_on_from_the_very_sample() -> None:
    plain = VirtualSession([QUESTION], answer=lambda messages: ANSWER).run(16)
    paused = _interrupted(4.0, "Mm-hmm.", seconds=0.45).run(16)

    def total(session: VirtualSession) -> int:
        return sum(len(event["delta"]) * 3 // 4 for event in session.of_type("response.output_audio.delta"))

    def padding(session: VirtualSession) -> int:
        return 2 * len(session.of_type("response.output_audio.delta"))

    assert abs(total(plain) - total(paused)) <= padding(plain) + padding(paused)


def test_without_interrupt_response_the_answer_goes_on() -> None:
    session = _interrupted(4.0)
    detection = {"type": "semantic_vad", "interrupt_response": False}
    session.send(
        {"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"turn_detection": detection}}}}
    )
    session.run(16)

    assert [event["response"]["status"] for event in session.of_type("response.done")] == ["completed", "completed"]
    assert len(session.of_type("input_audio_buffer.speech_started")) == 2


def test_audio_is_never_sent_further_ahead_than_the_lead() -> None:
    session = VirtualSession([QUESTION], answer=lambda messages: ANSWER, lead_ms=200).run(12)

    start = session.times("response.output_audio.delta")[0]
    sent = 0.0
    for moment, event in session.events:
        if event["type"] == "response.output_audio.delta":
            sent += len(event["delta"]) * 3 / 4 / 48_000
            assert sent <= moment - start + 0.2 + 0.002


def test_a_thirty_second_dialogue_with_two_barge_ins_takes_under_a_second() -> None:
    script = [
        QUESTION,
        Said(4.5, 6.0, "No wait, tell me about the weather"),
        Said(9.0, 10.5, "Sorry, I meant tomorrow in Rome"),
        Said(16.0, 17.0, "Thank you, good bye then"),
    ]
    session = VirtualSession(script, answer=lambda messages: ANSWER)

    began = time.process_time()
    session.run(30)
    spent = time.process_time() - began

    statuses = [event["response"]["status"] for event in session.of_type("response.done")]
    assert statuses == ["cancelled", "cancelled", "completed", "completed"]
    assert [text for role, text in session.conversation() if role == "user"] == [said.text for said in script]
    assert spent < 30  # the dialogue's own length: a sleep anywhere would show


def test_a_file_client_that_got_everything_at_once_still_hears_in_real_time() -> None:
    """With no pacing the response is done long before it is played; the interruption cuts it at what was played."""
    script = [QUESTION, Said(4.0, 5.2, "Wait, stop that now please")]
    session = VirtualSession(script, answer=lambda messages: ANSWER, lead_ms=0.0).run(5.0)

    assert session.of_type("response.done")[0]["response"]["status"] == "completed"
    # Sound begins at 2.62 s (see above: end of turn 2.4 s, seven words of 50 ms, 50 ms of synthesis); the interruption
    # is confirmed by its first words, before 5.0 s: between 1.38 and 2.38 s of sound.
    heard = dict(session.conversation())["assistant"]
    assert ANSWER.startswith(heard) and "six" in heard and "eleven" not in heard


def test_a_yes_over_the_last_moments_of_the_answer_is_an_answer() -> None:
    """The response is done, its last 200 ms are still playing: when they are over, a "yes" is a turn of its own."""
    rehearsal = VirtualSession([QUESTION], answer=lambda messages: "Shall I go on?").run(8)
    done = rehearsal.times("response.done")[0]
    script = [QUESTION, Said(done + 0.05, done + 0.45, "Yes.")]
    session = VirtualSession(script, answer=lambda messages: "Shall I go on?").run(12)

    assert ("user", "Yes.") in session.conversation()
    assert len(session.of_type("response.done")) == 2


def test_a_failed_transcript_of_a_suspected_interruption_lets_the_answer_go_on() -> None:
    session = _interrupted(4.0, "Mm-hmm.", seconds=0.45)
    session.at(4.0, lambda: session.fail.update(stt=2))
    session.run(16)

    assert [event["response"]["status"] for event in session.of_type("response.done")] == ["completed"]


def test_a_client_that_mutes_itself_in_a_suspected_interruption_hears_the_rest() -> None:
    session = _interrupted(4.0, "Mm-hmm.", seconds=0.45)
    session.run(4.2)
    session.run(20, audio=False)

    assert [event["response"]["status"] for event in session.of_type("response.done")] == ["completed"]


def test_a_commit_during_a_suspected_interruption_keeps_the_words() -> None:
    session = _interrupted(4.0)
    session.at(4.3, lambda: session.send({"type": "input_audio_buffer.commit"}))
    session.run(4.5)

    committed = list(session.session.history)[-1]
    assert committed.role == "user"
    assert committed.content[0].audio_ms >= 250


@pytest.mark.parametrize("lead_ms", [1.0, 2.0, 20.0])
def test_the_smallest_lead_sends_everything(lead_ms: float) -> None:
    session = VirtualSession([QUESTION], answer=lambda messages: ANSWER, lead_ms=lead_ms).run(12)

    assert session.of_type("response.done")[0]["response"]["status"] == "completed"

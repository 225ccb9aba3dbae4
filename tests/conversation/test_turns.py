"""Whole turns on a virtual clock: what is said when, what is thrown away, what is remembered."""

from __future__ import annotations

import pytest

from speech_to_speech.stage_types import CancelRequest, GenerateRequest, TranscribeRequest
from virtual_session import Said, VirtualSession

QUESTION = Said(0.5, 2.0, "What is the capital of France?")


def test_a_spoken_question_is_answered_and_remembered() -> None:
    session = VirtualSession([QUESTION]).run(6)

    assert session.conversation() == [("user", QUESTION.text), ("assistant", "Paris.")]
    assert session.of_type("response.done")[0]["response"]["status"] == "completed"


def test_the_reply_is_ready_behind_the_gate_when_the_turn_ends() -> None:
    """STT 150 ms + first token 100 ms + TTS 50 ms all pass within the pause that a sure turn end requires."""
    session = VirtualSession([QUESTION]).run(6)

    [stopped], [first_audio] = (
        session.times("input_audio_buffer.speech_stopped"),
        session.times("response.output_audio.delta")[:1],
    )
    assert first_audio == stopped


def test_nothing_of_a_speculative_reply_leaks_before_the_turn_ends() -> None:
    session = VirtualSession([QUESTION]).run(2.35)

    assert any(isinstance(request, GenerateRequest) and request.speculative for _, request in session.requests)
    assert not any(kind.startswith(("response.", "conversation.item")) for kind in session.types())
    assert session.conversation() == []


def test_a_user_who_goes_on_gets_one_answer_to_the_whole_turn() -> None:
    script = [Said(0.5, 1.5, "I would like a table"), Said(1.8, 2.8, "for two people.")]
    session = VirtualSession(script).run(6)

    whole = "I would like a table for two people."
    assert session.conversation() == [("user", whole), ("assistant", "Paris.")]
    assert session.prompts()[-1][-1] == ("user", whole)
    assert len(session.of_type("response.created")) == 1
    assert session.of_type("response.done")[0]["response"]["timeline"]["discarded_replies"] == 1


def test_an_unfinished_turn_waits_longer_than_a_finished_one() -> None:
    done = VirtualSession([QUESTION], p_complete=lambda time: 0.95).run(8)
    unfinished = VirtualSession([QUESTION], p_complete=lambda time: 0.05).run(8)

    assert done.times("response.created")[0] < unfinished.times("response.created")[0] < 2.0 + 4.0 + 0.1


@pytest.mark.parametrize("silence_ms", [200, 500, 900])
def test_server_vad_waits_exactly_its_silence_duration(silence_ms: int) -> None:
    session = VirtualSession([QUESTION])
    turn_detection = {"type": "server_vad", "silence_duration_ms": silence_ms}
    session.send(
        {
            "type": "session.update",
            "session": {"type": "realtime", "audio": {"input": {"turn_detection": turn_detection}}},
        }
    )
    session.run(6)

    [stopped] = session.times("input_audio_buffer.speech_stopped")
    frame, transport = 0.032, 0.020
    assert silence_ms / 1000 <= stopped - QUESTION.end + frame / 2 <= silence_ms / 1000 + 1.5 * frame + transport


def test_a_noise_without_words_gets_no_reply() -> None:
    session = VirtualSession([Said(0.5, 0.9, "")]).run(6)

    assert "response.created" not in session.types()
    assert not any(isinstance(r, GenerateRequest) and not r.prefill_only for _, r in session.requests)


def test_the_transcript_at_the_first_silent_frame_is_the_final_one() -> None:
    """Nothing voiced came after it, so the turn's end asks for no other."""
    session = VirtualSession([QUESTION]).run(6)

    finals = [request for _, request in session.requests if isinstance(request, TranscribeRequest) and request.final]
    assert len(finals) == 1


def test_partial_transcripts_are_only_ever_extended() -> None:
    long = Said(0.5, 6.0, "one two three four five six seven eight nine ten eleven twelve")
    session = VirtualSession([long])
    session.send(
        {
            "type": "session.update",
            "session": {"type": "realtime", "audio": {"input": {"transcription": {"model": ""}}}},
        }
    )
    session.run(10)

    deltas = [e["delta"] for e in session.of_type("conversation.item.input_audio_transcription.delta")]
    assert len(deltas) > 3
    assert "".join(deltas) == long.text


def test_words_are_read_by_the_language_model_while_the_user_speaks() -> None:
    long = Said(0.5, 6.0, "one two three four five six seven eight nine ten eleven twelve")
    session = VirtualSession([long]).run(5.5)

    prefills = [r for _, r in session.requests if isinstance(r, GenerateRequest) and r.prefill_only]
    assert any(request.messages[-1].text.startswith("one two three") for request in prefills)


def test_a_failed_transcription_is_an_error_and_the_session_lives_on() -> None:
    session = VirtualSession([QUESTION, Said(5.0, 6.0, "And of Spain?")], fail={"stt": 2})
    session.run(10)

    assert "broken" in session.of_type("error")[0]["error"]["message"]
    assert session.of_type("response.done")[-1]["response"]["status"] == "completed"
    assert ("user", "And of Spain?") in session.conversation()


@pytest.mark.parametrize("stage", ["llm", "tts"])
def test_a_failed_stage_fails_the_response_and_the_session_lives_on(stage: str) -> None:
    session = VirtualSession([QUESTION, Said(5.0, 6.0, "And of Spain?")], fail={stage: 1})
    session.run(10)

    first, second = session.of_type("response.done")
    assert first["response"]["status"] == "failed"
    assert first["response"]["status_details"]["error"]["message"] == f"{stage}: broken"
    assert [event["error"]["message"] for event in session.of_type("error")] == [f"{stage}: broken"]
    assert second["response"]["status"] == "completed"


def test_a_failed_turn_detector_does_not_keep_the_user_waiting() -> None:
    session = VirtualSession([QUESTION], fail={"turn": 100}).run(8)

    assert session.of_type("response.done")[0]["response"]["status"] == "completed"


def test_closing_the_session_cancels_everything_in_flight() -> None:
    session = VirtualSession([QUESTION]).run(2.3)
    begun = {
        request.token
        for _, request in session.requests
        if isinstance(request, GenerateRequest) and not request.prefill_only
    }
    session.session.close()
    session._drain()

    cancelled = {request.token for _, request in session.requests if isinstance(request, CancelRequest)}
    assert begun and begun <= cancelled


def test_without_speculation_the_models_work_after_the_turn_only() -> None:
    session = VirtualSession([QUESTION], speculate=False).run(6)

    [stopped] = session.times("input_audio_buffer.speech_stopped")
    work = [
        time
        for time, request in session.requests
        if (isinstance(request, TranscribeRequest) and request.final)
        or (isinstance(request, GenerateRequest) and not request.prefill_only)
    ]
    assert work and min(work) >= stopped
    assert session.conversation() == [("user", QUESTION.text), ("assistant", "Paris.")]


def test_whole_answers_are_sent_when_all_of_them_is_spoken() -> None:
    answer = "One two three four five. Six seven eight nine ten."
    session = VirtualSession([QUESTION], answer=lambda messages: answer, whole_answers=True).run(9)

    first_audio = session.times("response.output_audio.delta")[0]
    last_text = session.times("response.output_audio_transcript.delta")[-1]
    assert first_audio >= last_text + session.tts_s


SLOW_END = [Said(0.5, 1.9, "Where is it now?"), Said(1.9, 2.2, "")]
"""The last word is understood 300 ms before its sound ends."""


def test_a_partial_that_reads_finished_is_read_ahead_whole_and_answered_when_it_is_final() -> None:
    session = VirtualSession(SLOW_END, stt_s=0.1).run(8)

    read = [r.messages[-1].text for t, r in session.requests if isinstance(r, GenerateRequest) and r.prefill_only]
    assert read[-1] == "Where is it now?"
    assert [prompt[-1][1] for prompt in session.prompts()] == ["Where is it now?"]
    assert session.conversation() == [("user", "Where is it now?"), ("assistant", "Paris.")]


def test_a_user_who_speaks_on_after_a_full_sentence_is_answered_once() -> None:
    script = [Said(0.5, 1.9, "Is this a dog?"), Said(1.9, 4.5, "His name is Rex and he is old")]
    session = VirtualSession(script, stt_s=0.1).run(9)

    assert session.prompts()[-1][-1][1] == "Is this a dog? His name is Rex and he is old"
    assert len(session.of_type("response.created")) == 1
    assert [role for role, _ in session.conversation()] == ["user", "assistant"]


def test_pauses_shorter_than_a_decode_do_not_starve_the_transcript() -> None:
    """Each pause asks for a final transcript; were it cancelled when the user goes on, none would ever come."""
    said = [Said(0.5 + n, 1.3 + n, f"word {n} and") for n in range(6)]
    session = VirtualSession(said, stt_s=0.9, p_complete=lambda time: 0.0).run(10)

    heard = [t for t, r in session.requests if isinstance(r, GenerateRequest) and r.messages[-1].role == "user"]
    assert [time for time in heard if time < said[-1].start]
    assert session.conversation()[0] == ("user", " ".join(part.text for part in said))


def test_a_question_taken_back_before_its_transcript_is_not_answered_alone() -> None:
    """The first turn's guess is held behind the gate when the user begins again; both are answered by one reply."""
    script = [Said(0.5, 2.0, "What is the capital of France?"), Said(2.6, 3.6, "No, of Spain.")]
    session = VirtualSession(script, stt_s=0.9).run(9)

    assert session.prompts()[-1][-2:] == [("user", script[0].text), ("user", script[1].text)]
    assert len(session.of_type("response.created")) == 1


def test_a_noise_after_a_question_does_not_cost_it_its_answer() -> None:
    session = VirtualSession([Said(0.5, 2.0, "Tell me a joke."), Said(2.5, 2.9, "")], stt_s=0.9).run(9)

    assert session.conversation()[-1] == ("assistant", "Paris.")
    assert len(session.of_type("response.created")) == 1


def test_after_a_failed_transcript_the_next_turn_gets_its_own_answer() -> None:
    script = [Said(0.5, 2.0, "What is it?"), Said(5.0, 6.0, "Sing a song.")]
    session = VirtualSession(script, answer=lambda messages: f"Re: {messages[-1].text}", fail={"stt": 0})
    session.at(2.0, lambda: session.fail.update(stt=2))
    session.run(9)

    answers = [text for role, text in session.conversation() if role == "assistant"]
    assert answers == ["Re: Sing a song."]


def test_a_response_asked_for_while_one_is_owed_is_the_only_one() -> None:
    session = VirtualSession([QUESTION], stt_s=0.9)
    session.at(2.5, lambda: session.send({"type": "response.create"}))
    session.run(8)

    assert len(session.of_type("response.created")) == 1


def test_instructions_that_change_in_the_pause_count_for_the_reply() -> None:
    session = VirtualSession([QUESTION])
    update = {"type": "session.update", "session": {"type": "realtime", "instructions": "Rhyme."}}
    session.at(2.3, lambda: session.send(update))
    session.run(6)

    assert session.prompts()[-1][0] == ("system", "Rhyme.")
    assert len(session.of_type("response.created")) == 1


def test_switching_to_push_to_talk_in_mid_sentence_keeps_what_was_said() -> None:
    session = VirtualSession([QUESTION])
    off = {"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"turn_detection": None}}}}
    session.at(1.5, lambda: session.send(off))
    session.run(2.2)
    session.send({"type": "input_audio_buffer.commit"})
    session.run(4)

    assert session.conversation() == [("user", QUESTION.text)]


def test_a_client_that_takes_the_id_of_the_turn_going_on_does_not_end_the_session() -> None:
    session = VirtualSession([QUESTION])

    def take_it() -> None:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}
        taken = session.of_type("input_audio_buffer.speech_started")[0]["item_id"]
        session.send({"type": "conversation.item.create", "item": {**item, "id": taken}})

    session.at(1.5, take_it)
    session.run(6)

    assert session.conversation() == [("user", "Hi."), ("user", QUESTION.text), ("assistant", "Paris.")]

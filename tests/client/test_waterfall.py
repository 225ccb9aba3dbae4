from __future__ import annotations

from speech_to_speech.client.waterfall import latency, waterfall

# The longest bar has 44 columns, so at 440 ms one column is 10 ms.
TIMELINE = {
    "last_voiced_ms": 0.0,
    "turn_end_ms": 360.0,
    "transcript_ms": 180.0,
    "first_token_ms": 300.4,
    "first_text_ms": 310.0,
    "first_audio_ms": 420.0,
    "first_audible_ms": 440.0,
    "playback_end_ms": 2400.0,
    "discarded_replies": 1,
    "turn_end_probability": 0.98,
}

EXPECTED = """\
440 ms from your last word to the first sound:
  end of turn decided   ####################################           360 ms
  transcript            ------------------                             180 ms
  first token           ------------------------------                 300 ms
  first audio made      ##########################################     420 ms
  first audible sample  ############################################   440 ms
  --- done in the pause, before the end of the turn was certain"""


def test_bars_run_from_the_last_word_and_are_dashed_for_what_was_done_in_the_pause() -> None:
    assert waterfall(TIMELINE) == EXPECTED


def test_every_line_fits_eighty_columns() -> None:
    slow = {key: 1000.0 * value for key, value in TIMELINE.items()}
    assert max(map(len, waterfall(slow).splitlines())) <= 80


def test_steps_that_did_not_happen_are_left_out_and_the_legend_with_its_bars() -> None:
    text_reply = {"turn_end_ms": 100.0, "transcript_ms": 100.0, "first_token_ms": 200.0, "first_audio_ms": None}
    assert waterfall(text_reply) == (
        "After your last word:\n"
        "  end of turn decided   ######################                         100 ms\n"
        "  transcript            ######################                         100 ms\n"
        "  first token           ############################################   200 ms"
    )


def test_a_step_done_before_the_last_word_has_no_bar() -> None:
    lines = waterfall({"turn_end_ms": 200.0, "transcript_ms": -30.0}).splitlines()
    assert lines[2] == "  transcript                                                           -30 ms"


def test_an_empty_timeline_makes_nothing() -> None:
    assert (waterfall({}), latency({})) == ("", "")


def test_the_line_of_a_turn_gives_the_total_and_its_steps() -> None:
    assert latency(TIMELINE) == (
        "440 ms from your last word to the first sound "
        "(end of turn decided 360, transcript 180, first token 300, first audio made 420)"
    )

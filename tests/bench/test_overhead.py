"""The benchmark of the server itself, with tiny numbers: what it reports, never how fast it was."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from speech_to_speech.bench.process_cost import allow_connections
from speech_to_speech.bench.realtime_load import client_frame
from speech_to_speech.cli import main
from speech_to_speech.errors import ConfigurationError


def test_the_report_counts_what_two_active_and_three_idle_sessions_did(tmp_path: Path) -> None:
    file = tmp_path / "overhead.json"
    assert main(["bench", "overhead", "--sessions", "2", "--idle", "3", "--seconds", "1", "--json", str(file)]) == 0

    report = json.loads(file.read_text())
    assert report["idle"].keys() == {"sessions", "memory_kb_per_session", "core_share"}
    assert report["idle"]["sessions"] == 3
    assert report["parts_us_per_pair"].keys() == {"resampling", "json_base64", "session_logic"}
    assert all(value > 0 for value in report["parts_us_per_pair"].values())
    (level,) = report["active"]
    assert (level["sessions"], level["lost"]) == (2, 0)
    assert level["expected_frames"] == pytest.approx(2 * level["seconds"] / 0.02, rel=0.02)
    assert level["pairs"] == pytest.approx((level["frames_handled"] + level["frames_out"]) / 2, abs=0.2)
    assert level["frames_handled"] > 0 and level["frames_out"] > 0 and level["deltas"] > 0
    assert 0 <= level["on_time_share"] <= 1
    for name in ("block_ms", "handled_ms"):
        assert level[name]["n"] > 0
        assert level[name]["p50"] <= level[name]["p99"] <= level[name]["max"]
    core_s = level["core_share"] * level["seconds"]
    assert level["cpu_us_per_pair"] * level["pairs"] / 1e6 == pytest.approx(core_s, rel=0.05)


def test_more_connections_than_the_system_allows_are_refused_in_one_line() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        pytest.skip("this system has no limit")
    with pytest.raises(ConfigurationError, match=rf"connections need .* system allows {hard}: raise"):
        allow_connections(hard)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


def test_the_soft_limit_is_raised_where_that_is_allowed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        allow_connections(1000)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 1000
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("counts", ["0", "1,,2", "many"])
def test_numbers_of_sessions_are_checked(counts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "overhead", "--sessions", counts]) == 2
    assert "--sessions: expected whole numbers from 1" in capsys.readouterr().err


def test_the_frames_of_the_load_are_those_of_the_standard() -> None:
    # RFC 6455, 5.7: "Hello" in a masked text frame, with the key of its example.
    assert client_frame(1, b"Hello") == bytes.fromhex("818537fa213d7f9f4d5158")

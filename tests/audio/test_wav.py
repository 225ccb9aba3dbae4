"""Files are laid out by hand after the RIFF specification, so that the reader is not judged by our own writer."""

from __future__ import annotations

import struct
import wave
from pathlib import Path

import numpy as np
import pytest

from speech_to_speech.audio.wav import load_wav, read_wav, write_wav
from speech_to_speech.errors import ConfigurationError

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    body = b"".join(name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def layout(tag: int, bits: int, channels: int = 1, rate: int = 8_000) -> bytes:
    frame = channels * bits // 8
    return struct.pack("<HHIIHH", tag, channels, rate, rate * frame, frame, bits)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "speech.wav"


@pytest.mark.parametrize(
    ("tag", "bits", "data"),
    [
        (PCM, 8, bytes([128, 192, 0])),
        (PCM, 16, struct.pack("<3h", 0, 2**14, -(2**15))),
        (PCM, 24, b"\x00\x00\x00\x00\x00\x40\x00\x00\x80"),
        (PCM, 32, struct.pack("<3i", 0, 2**30, -(2**31))),
        (FLOAT, 32, struct.pack("<3f", 0.0, 0.5, -1.0)),
    ],
)
def test_every_width_reads_as_the_same_fractions_of_full_scale(path: Path, tag: int, bits: int, data: bytes) -> None:
    path.write_bytes(riff((b"fmt ", layout(tag, bits)), (b"data", data)))
    samples, rate = load_wav(path)
    assert (samples.tolist(), samples.dtype, rate) == ([0.0, 0.5, -1.0], np.float32, 8_000)


def test_channels_are_averaged(path: Path) -> None:
    frames = struct.pack("<4h", 2**14, 0, -(2**14), -(2**14))
    path.write_bytes(riff((b"fmt ", layout(PCM, 16, channels=2)), (b"data", frames)))
    assert load_wav(path)[0].tolist() == [0.25, -0.5]


def test_the_extensible_layout_is_read_by_its_sub_format(path: Path) -> None:
    extension = struct.pack("<HHIH", 22, 16, 4, PCM) + bytes.fromhex("000000001000800000aa00389b71")
    path.write_bytes(riff((b"fmt ", layout(EXTENSIBLE, 16) + extension), (b"data", struct.pack("<h", 2**14))))
    assert load_wav(path)[0].tolist() == [0.5]


def test_other_chunks_of_odd_length_are_skipped(path: Path) -> None:
    path.write_bytes(riff((b"LIST", b"abc"), (b"fmt ", layout(PCM, 16)), (b"data", struct.pack("<h", 2**14))))
    assert load_wav(path)[0].tolist() == [0.5]


def test_a_recording_whose_size_was_never_filled_in_is_read_to_its_end(path: Path) -> None:
    data = riff((b"fmt ", layout(PCM, 16)), (b"data", struct.pack("<2h", 2**14, 0)))
    path.write_bytes(data.replace(b"data" + struct.pack("<I", 4), b"data" + b"\xff\xff\xff\xff") + b"\x01")
    assert load_wav(path)[0].tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a WAV file"),
        (b"ID3 this is an MP3", "not a WAV file"),
        (riff((b"fmt ", layout(PCM, 16))), "no audio"),
        (riff((b"data", b"\0\0")), "audio before its format"),
        (riff((b"fmt ", b"\1\0"), (b"data", b"")), "too short"),
        (riff((b"fmt ", layout(PCM, 16, channels=0)), (b"data", b"")), "0 channels"),
        (riff((b"fmt ", layout(7, 8)), (b"data", b"")), "8 bit format 0x0007 is not supported"),
        (riff((b"fmt ", layout(FLOAT, 64)), (b"data", b"")), "64 bit float PCM is not supported"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_name_and_the_reason(
    path: Path, content: bytes, reason: str
) -> None:
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=reason) as refusal:
        load_wav(path)
    assert str(path) in str(refusal.value)


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"speech\.wav: No such file"):
        load_wav(path)


def test_a_folder_that_does_not_exist_is_named_when_writing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        write_wav(tmp_path / "nowhere" / "speech.wav", np.zeros(1, np.float32), 8_000)


def test_the_standard_library_reads_what_is_written(path: Path) -> None:
    write_wav(path, np.array([0.5, -1.0], np.float32), 24_000)
    with wave.open(str(path)) as reader:
        assert reader.getparams()[:4] == (1, 2, 24_000, 2)
        assert struct.unpack("<2h", reader.readframes(2)) == (2**14, -(2**15))


def test_reading_at_another_rate_converts(path: Path) -> None:
    write_wav(path, np.zeros(2_400, np.float32), 24_000)
    assert len(read_wav(path, 16_000)) == 1_600


def test_two_channels_are_written_side_by_side(tmp_path: Path) -> None:
    write_wav(tmp_path / "x.wav", np.array([[0.5, -0.5], [0.25, 0.0]], np.float32), 24_000)
    with wave.open(str(tmp_path / "x.wav")) as reader:
        assert (reader.getnchannels(), reader.getnframes()) == (2, 2)
        assert np.frombuffer(reader.readframes(2), "<i2").tolist() == [16_384, -16_384, 8_192, 0]

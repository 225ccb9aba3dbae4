"""The parts of a frame pair that can be measured alone, on one thread, without sockets."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable

import numpy as np
import orjson

from speech_to_speech.audio.pcm import pcm16_to_samples, samples_to_pcm16
from speech_to_speech.audio.resampling import StreamResampler
from speech_to_speech.bench.null_stages import VOICE_RATE
from speech_to_speech.conversation.reply import Pacing
from speech_to_speech.realtime.client_events import decode_client_event
from speech_to_speech.realtime.server_events import audio_base64
from speech_to_speech.realtime.session import RealtimeSession
from speech_to_speech.realtime.session_config import ServerVoices
from speech_to_speech.server.websocket import encode
from speech_to_speech.session.driver import CLIENT_RATE
from speech_to_speech.stage_types import RECOGNITION_RATE, DetectSpeechRequest, SpeechProbability

FRAMES_PER_DELTA = 5
"""Audio goes out in deltas of 100 ms."""

FRAMES_PER_CLAUSE = 100
"""A clause of two seconds is resampled at once."""

ROUNDS = 5


def frame_pair_parts(repeat: int = 500) -> dict[str, float]:
    """CPU microseconds of each part per frame pair: the best of `ROUNDS` means of `repeat` frames, warm."""
    pcm = np.random.default_rng(0).integers(-300, 300, CLIENT_RATE // 50).astype("<i2").tobytes()
    return {
        "resampling": _resampling(pcm, repeat),
        "json_base64": _json(pcm, repeat),
        "session_logic": _session(pcm, repeat),
    }


def _resampling(pcm: bytes, repeat: int) -> float:
    incoming = StreamResampler(CLIENT_RATE, RECOGNITION_RATE)
    outgoing = StreamResampler(VOICE_RATE, CLIENT_RATE)
    clause = np.random.default_rng(0).uniform(-0.3, 0.3, VOICE_RATE // 50 * FRAMES_PER_CLAUSE).astype(np.float32)
    taken = _microseconds(lambda: incoming.process(pcm16_to_samples(pcm)), repeat)
    given = _microseconds(lambda: samples_to_pcm16(outgoing.process(clause)), max(1, repeat // FRAMES_PER_CLAUSE))
    return taken + given / FRAMES_PER_CLAUSE


def _json(pcm: bytes, repeat: int) -> float:
    append = orjson.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()}).decode()
    delta_pcm = pcm * FRAMES_PER_DELTA

    def delta() -> bytes:
        return encode(
            {
                "type": "response.output_audio.delta",
                "response_id": "resp_0123456789abcdef0123",
                "output_index": 0,
                "item_id": "item_0123456789abcdef0123",
                "content_index": 0,
                "delta": audio_base64(delta_pcm),
                "event_id": "event_0123456789abcdef0123",
            }
        )

    taken = _microseconds(lambda: decode_client_event(append), repeat)
    return taken + _microseconds(delta, repeat) / FRAMES_PER_DELTA


def _session(pcm: bytes, repeat: int) -> float:
    """Audio in and the detector's answers, while nobody speaks."""
    session = RealtimeSession(model="", voices=ServerVoices(("noise",)), wall=0.0, pacing=Pacing())
    samples = np.zeros(RECOGNITION_RATE // 50, np.float32)

    def frame() -> None:
        session.append_audio(pcm, samples)
        for output in session.take_outputs():
            if isinstance(output, DetectSpeechRequest):
                session.receive_result(SpeechProbability(output.index, 0.0), 0.0)
        session.next_wakeup(0.0)

    return _microseconds(frame, repeat)


def _microseconds(work: Callable[[], object], repeat: int) -> float:
    work()
    means = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(repeat):
            work()
        means.append((time.process_time() - began) / repeat)
    return min(means) * 1e6

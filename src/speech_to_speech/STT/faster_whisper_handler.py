"""Whisper through faster-whisper's runtime (CTranslate2), decoding short contexts so that a question takes 0.2 s."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from speech_to_speech.arguments_classes.stt_arguments import STTArguments
from speech_to_speech.backend import Requirement
from speech_to_speech.errors import Cancelled, ModelLoadError, StageError
from speech_to_speech.models import resolve
from speech_to_speech.stage_types import (
    RECOGNITION_RATE,
    IsCancelled,
    Samples,
    SpeechToTextCapabilities,
    Transcript,
)
from speech_to_speech.STT.base import RecognitionStream, SpeechToText
from speech_to_speech.STT.transcript_judgement import is_looping, speech_of, without_repetition
from speech_to_speech.STT.whisper_decoder import FULL_CONTEXT_S, Hypothesis, WhisperDecoder

SHORT_CONTEXT_S = 10.0
"""Shortest context. `base` encodes 10 s in 75 ms, 12 s in 95 and 30 s in 350 on two cores. Word error rates of greedy
decodes on held-out prompts: 5.5 % at 10 s, 5.2 % at 12 s, 5.4 % at 30 s; in 8 s and less the model begins to loop."""

CONTEXT_MARGIN_S = 4.0
"""Silence after the speech that the model needs to see its end."""

WINDOW_S = 26.0
"""Longer audio is decoded window by window; a window's text is final once the next one begins. Shorter windows lose
words of speech that repeats itself where they are cut."""

LANGUAGE_KNOWN_AFTER_S = 2.0
LANGUAGE_CERTAIN_AFTER_S = 1.0
LANGUAGE_CERTAIN = 0.9
"""With this much audio, or a language so probable, the detected language is kept for the rest of the utterance."""

DRAFT_MISSES_AT_MOST_S = 0.13
"""A partial transcript that reads finished and missed no more sound than this is offered to the final decode as a
draft. The shortest words take longer, and a draft cannot be asked whether another word follows it."""

SILENT_SHARE = 0.01
"""Below this share of the loudest level (-40 dB) there is no sound."""


class FasterWhisper(SpeechToText):
    """One model for all utterances."""

    requirements = (Requirement("ctranslate2", "ctranslate2"), Requirement("tokenizers", "tokenizers"))

    def __init__(self, decoder: WhisperDecoder, *, language: str, beam_size: int) -> None:
        self._decoder = decoder
        self._language = language
        self._beam_size = beam_size

    @classmethod
    def load(cls, arguments: STTArguments, threads: int) -> FasterWhisper:
        folder = resolve("stt", arguments.model)
        try:
            decoder = WhisperDecoder(folder, threads=threads, compute_type=arguments.compute_type)
        except Exception as error:
            raise ModelLoadError(f"--stt_model {arguments.model}: {error}") from error
        if arguments.language and arguments.language not in decoder.languages:
            known = ", ".join(decoder.languages)
            raise ModelLoadError(f"--stt_language {arguments.language}: {arguments.model} knows {known}")
        recogniser = cls(decoder, language=arguments.language, beam_size=arguments.beam_size)
        recogniser._warm_up()
        return recogniser

    @property
    def capabilities(self) -> SpeechToTextCapabilities:
        return SpeechToTextCapabilities(partials=True, languages=self._decoder.languages)

    def open(self, *, language: str = "", prompt: str = "") -> RecognitionStream:
        wanted = language or self._language
        return WhisperStream(
            self._decoder,
            language=wanted if wanted in self._decoder.languages else "",
            spelling=prompt,
            beam_size=self._beam_size,
        )

    def _warm_up(self) -> None:
        stream = self.open()
        stream.accept(np.zeros(RECOGNITION_RATE, np.float32))
        stream.decode(final=True, is_cancelled=lambda: False)


@dataclass(frozen=True, slots=True)
class _Heard:
    """What one decode made of the window."""

    samples: int
    final: bool
    hypothesis: Hypothesis
    transcript: Transcript


class WhisperStream(RecognitionStream):
    """One utterance. `committed` is the text of windows that are over."""

    def __init__(self, decoder: WhisperDecoder, *, language: str, spelling: str, beam_size: int) -> None:
        self._decoder = decoder
        self._language = language
        self._spelling = spelling
        self._beam_size = beam_size
        self._chunks: list[Samples] = []
        self._committed = ""
        self._stable: tuple[int, ...] = ()
        self._previous: list[tuple[int, ...]] = []
        self._last: _Heard | None = None

    def accept(self, samples: Samples) -> None:
        self._chunks.append(samples)

    def decode(self, *, final: bool, is_cancelled: IsCancelled) -> Transcript:
        window = self._window()
        if self._last is not None and self._last.samples == len(window) and (self._last.final or not final):
            return self._last.transcript
        if len(window) < RECOGNITION_RATE // 20:
            return Transcript(self._committed, self._committed, final, self._language)
        try:
            draft = self._draft(window) if final else None
            hypothesis = self._hypothesis(window, self._beam_size if final else 1, is_cancelled, draft)
        except Cancelled:
            raise
        except Exception as error:
            raise StageError("stt", f"{type(error).__name__}: {error}") from error
        transcript = self._transcript(hypothesis, final)
        self._last = _Heard(len(window), final, hypothesis, transcript)
        return transcript

    def _window(self) -> Samples:
        """The audio not yet committed, at most `WINDOW_S` of it. Older windows are decoded and committed here, be it
        cancelled or not, so that every decode brings the utterance forward.
        """
        window = np.concatenate(self._chunks) if self._chunks else np.zeros(0, np.float32)
        while len(window) > WINDOW_S * RECOGNITION_RATE:
            text, cut = self._stable_part(window) if self._stable else self._first_part(window)
            self._committed = _joined(self._committed, text)
            self._stable, self._previous, self._last = (), [], None
            window = window[cut:]
            self._chunks = [window]
        self._chunks = [window]
        return window

    def _stable_part(self, window: Samples) -> tuple[str, int]:
        """What is stable already, and the sample where it ends."""
        heard = window[: int(WINDOW_S * RECOGNITION_RATE)]
        encoded = self._decoder.encode(heard, WINDOW_S + CONTEXT_MARGIN_S)
        prompt = self._decoder.prompt(self._language or "en", self._spelling)
        tokens = [token for word in self._previous for token in word]
        cut = self._decoder.end_of(encoded, prompt, tokens, len(self._stable), len(heard))
        return " ".join(self._decoder.text(self._stable).split()), max(cut, RECOGNITION_RATE)

    def _first_part(self, window: Samples) -> tuple[str, int]:
        """The window up to a quiet point, decoded."""
        cut = _quietest(window)
        return self._judged(self._hypothesis(window[:cut], self._beam_size, lambda: False)), cut

    def _draft(self, window: Samples) -> Hypothesis | None:
        """What the newest decode heard, if that may be all of the window."""
        last = self._last
        if last is None or not last.transcript.reads_finished:
            return None
        missed = _sounding_end(window) - last.samples
        return last.hypothesis if missed <= DRAFT_MISSES_AT_MOST_S * RECOGNITION_RATE else None

    def _hypothesis(
        self, window: Samples, beam_size: int, is_cancelled: IsCancelled, draft: Hypothesis | None = None
    ) -> Hypothesis:
        seconds = len(window) / RECOGNITION_RATE
        context = max(SHORT_CONTEXT_S, seconds + CONTEXT_MARGIN_S)
        hypothesis = self._decoded(window, context, beam_size, is_cancelled, draft)
        looping = not hypothesis.complete or is_looping(self._decoder.text(hypothesis.tokens))
        if looping and context < FULL_CONTEXT_S:
            hypothesis = self._decoded(window, FULL_CONTEXT_S, max(2, beam_size), is_cancelled)
        return hypothesis

    def _decoded(
        self,
        window: Samples,
        context_s: float,
        beam_size: int,
        is_cancelled: IsCancelled,
        draft: Hypothesis | None = None,
    ) -> Hypothesis:
        if is_cancelled():
            raise Cancelled
        encoded = self._decoder.encode(window, context_s)
        if is_cancelled():
            raise Cancelled
        language = self._language
        seconds = len(window) / RECOGNITION_RATE
        if not language and self._decoder.is_multilingual:
            language, probability = self._decoder.detect_language(encoded)
            certain = seconds >= LANGUAGE_CERTAIN_AFTER_S and probability >= LANGUAGE_CERTAIN
            if certain or seconds >= LANGUAGE_KNOWN_AFTER_S:
                self._language = language
        prompt = self._decoder.prompt(language, self._spelling)
        if draft is not None and (confirmed := self._decoder.confirms(encoded, prompt, draft, len(window))):
            return confirmed
        return self._decoder.decode(
            encoded, prompt, self._stable, seconds=seconds, beam_size=beam_size, is_cancelled=is_cancelled
        )

    def _judged(self, hypothesis: Hypothesis) -> str:
        text = self._decoder.text(hypothesis.tokens)
        if self._stable:  # the client has got it as speech: it is not taken back
            return without_repetition(" ".join(text.split()))
        return speech_of(
            text,
            log_probability=hypothesis.log_probability,
            no_speech_probability=hypothesis.no_speech_probability,
        )

    def _transcript(self, hypothesis: Hypothesis, final: bool) -> Transcript:
        text = _joined(self._committed, self._judged(hypothesis))
        if final:
            return Transcript(text, text, True, self._language)
        if text:
            self._agree(hypothesis.tokens)
        stable = _joined(self._committed, " ".join(self._decoder.text(self._stable).split()))
        return Transcript(text, stable if text.startswith(stable) else self._committed, False, self._language)

    def _agree(self, tokens: tuple[int, ...]) -> None:
        """Words of two decodes in a row are stable, but for the last one, which its sound may still change."""
        words = self._decoder.words(tokens)
        pairs = zip(words[:-1], self._previous, strict=False)
        agreed = [word for word, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
        stable = tuple(token for word in agreed for token in word)
        if len(stable) > len(self._stable):
            self._stable = stable
        self._previous = words


def _joined(before: str, after: str) -> str:
    return f"{before} {after}".strip()


def _sounding_end(window: Samples) -> int:
    """One past the last 10 ms that hold sound."""
    block = RECOGNITION_RATE // 100
    blocks = np.square(window[: len(window) // block * block].reshape(-1, block)).mean(axis=1)
    if not len(blocks):
        return len(window)
    return (int(np.flatnonzero(blocks >= SILENT_SHARE**2 * blocks.max())[-1]) + 1) * block


def _quietest(window: Samples) -> int:
    """Where to cut: the middle of the quietest 100 ms in the last quarter of the first `WINDOW_S` seconds."""
    block = RECOGNITION_RATE // 10
    first, last = int(WINDOW_S * 0.75 * 10), int(WINDOW_S * 10)
    energies = [float(np.square(window[i * block : (i + 1) * block]).sum()) for i in range(first, last)]
    return (first + int(np.argmin(energies))) * block + block // 2

"""One Whisper model on CTranslate2: sound to tokens, in steps that can be cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from speech_to_speech.errors import Cancelled
from speech_to_speech.stage_types import RECOGNITION_RATE, IsCancelled, Samples
from speech_to_speech.VAD.log_mel import HOP_SAMPLES, log_mel

FULL_CONTEXT_S = 30.0
"""The window Whisper was trained on."""

_STEP_TOKENS = 48
"""Tokens of a greedy decode between two looks at a cancel: 400 ms of `base` on two cores, more than nearly all
questions have. Each step decodes the tokens before it again, one by one: short steps cost more than they save."""

_TOKENS_PER_SECOND = 8
_EXTRA_TOKENS = 16
"""Fast speech has 4 to 5 tokens a second; a decode that wants more than this allows is looping."""

_CONFIRMED_PROBABILITY = 0.35
"""Each token of a draft must be at least this likely. Above 0.5 a greedy decode would have chosen it."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """`tokens` without prompt and end, the forced prefix included, and their mean log-probability.

    `complete` is false when the decode ran into the limit of tokens.
    """

    tokens: tuple[int, ...]
    log_probability: float
    no_speech_probability: float
    complete: bool


class WhisperDecoder:
    """A loaded model and its vocabulary."""

    def __init__(self, folder: Path, *, threads: int, compute_type: str) -> None:
        import ctranslate2
        import tokenizers

        self._model = ctranslate2.models.Whisper(
            str(folder), device="cpu", compute_type=compute_type, intra_threads=threads, inter_threads=1
        )
        self._storage = ctranslate2.StorageView
        self._vocabulary = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.is_multilingual = bool(self._model.is_multilingual)
        self._end = self._id("<|endoftext|>")
        self.languages = self._languages()

    def encode(self, samples: Samples, context_s: float) -> Any:
        """The encoder's output for `samples` (16 kHz) padded with silence to `context_s` seconds."""
        frames = int(min(context_s, FULL_CONTEXT_S) * RECOGNITION_RATE / HOP_SAMPLES)
        padded = np.zeros(frames * HOP_SAMPLES, np.float32)
        padded[: len(samples)] = samples[: len(padded)]
        return self._model.encode(self._storage.from_array(log_mel(padded, self._model.n_mels)[None]), to_cpu=False)

    def detect_language(self, encoded: Any) -> tuple[str, float]:
        """The likeliest language, as a BCP-47 code, and its probability."""
        token, probability = self._model.detect_language(encoded)[0][0]
        return token.strip("<|>"), float(probability)

    def prompt(self, language: str, spelling: str) -> list[int]:
        """The tokens before the transcript."""
        tokens = []
        if spelling:
            tokens = [self._id("<|startofprev|>"), *self.tokens(" " + spelling.strip())[-100:]]
        tokens.append(self._id("<|startoftranscript|>"))
        if self.is_multilingual:
            tokens += [self._id(f"<|{language}|>"), self._id("<|transcribe|>")]
        return [*tokens, self._id("<|notimestamps|>")]

    def decode(
        self,
        encoded: Any,
        prompt: Sequence[int],
        prefix: Sequence[int],
        *,
        seconds: float,
        beam_size: int,
        is_cancelled: IsCancelled,
    ) -> Hypothesis:
        """The likeliest transcript that begins with `prefix`; `seconds` of speech bound its length.

        A greedy decode (`beam_size` 1) looks for a cancel every few tokens, a beam search only before it begins.
        """
        limit = len(prefix) + int(seconds * _TOKENS_PER_SECOND) + _EXTRA_TOKENS
        tokens = list(prefix)
        no_speech = 0.0
        step = _STEP_TOKENS if beam_size == 1 else limit
        while True:
            if is_cancelled():
                raise Cancelled
            made, log_probability, no_speech_here, complete = self._generate(encoded, prompt, tokens, step, beam_size)
            if len(tokens) == len(prefix):
                no_speech = no_speech_here
            tokens += made
            if complete or len(tokens) >= limit:
                return Hypothesis(tuple(tokens), log_probability, no_speech, complete)

    def confirms(self, encoded: Any, prompt: Sequence[int], draft: Hypothesis, samples: int) -> Hypothesis | None:
        """`draft` with its probability under `encoded`, or None where a token of it is unlikely.

        One pass over all tokens, where a decode takes one pass for each: 25 ms of `base` against 110 for ten tokens.
        """
        probabilities = self._align(encoded, prompt, draft.tokens, samples).text_token_probs
        if not probabilities or min(probabilities) < _CONFIRMED_PROBABILITY:
            return None
        return replace(draft, log_probability=float(np.log(probabilities).mean()))

    def end_of(self, encoded: Any, prompt: Sequence[int], tokens: Sequence[int], count: int, samples: int) -> int:
        """The sample at which the first `count` of `tokens` have been spoken, by the model's cross-attention."""
        aligned = self._align(encoded, prompt, tokens, samples).alignments
        ends = [frame for token, frame in aligned if token < count]
        return min(samples, (max(ends, default=0) + 1) * 2 * HOP_SAMPLES)

    def tokens(self, text: str) -> list[int]:
        """The tokens of `text`, without specials."""
        ids: list[int] = self._vocabulary.encode(text, add_special_tokens=False).ids
        return ids

    def text(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, specials left out."""
        decoded: str = self._vocabulary.decode(list(tokens), skip_special_tokens=True)
        return decoded

    def words(self, tokens: Sequence[int]) -> list[tuple[int, ...]]:
        """`tokens` in groups, one a word: a group begins where a token begins with a space."""
        groups: list[list[int]] = []
        for token in tokens:
            if not groups or (self._vocabulary.id_to_token(token) or "").startswith("Ġ"):
                groups.append([])
            groups[-1].append(token)
        return [tuple(group) for group in groups]

    def _align(self, encoded: Any, prompt: Sequence[int], tokens: Sequence[int], samples: int) -> Any:
        frames = min(samples // HOP_SAMPLES, encoded.shape[1] * 2)
        start = [token for token in prompt if token != self._id("<|notimestamps|>")]
        return self._model.align(encoded, start, [list(tokens)], [frames])[0]

    def _generate(
        self, encoded: Any, prompt: Sequence[int], tokens: Sequence[int], step: int, beam_size: int
    ) -> tuple[list[int], float, float, bool]:
        start = [*prompt, *tokens]
        # CTranslate2 makes at most half of `max_length`, forced tokens included, whatever the prompt takes.
        maximum = 2 * (len(tokens) + step) + len(prompt)
        result = self._model.generate(
            encoded,
            [start],
            beam_size=beam_size,
            max_length=maximum,
            suppress_blank=not tokens,
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        made = [token for token in result.sequences_ids[0] if token != self._end]
        complete = len(made) < maximum // 2
        if made[: len(tokens)] == list(tokens):  # CTranslate2 repeats what was forced
            made = made[len(tokens) :]
        return made, float(result.scores[0]), float(result.no_speech_prob), complete

    def _id(self, token: str) -> int:
        found = self._vocabulary.token_to_id(token)
        if found is None:
            raise KeyError(f"the vocabulary lacks {token}")
        return int(found)

    def _languages(self) -> tuple[str, ...]:
        if not self.is_multilingual:
            return ("en",)
        names = (token.strip("<|>") for token in self._vocabulary.get_vocab() if token.startswith("<|"))
        return tuple(sorted(name for name in names if 2 <= len(name) <= 3 and name.isalpha()))

"""Where model files come from: a pinned table of assets, the cache they lie in, and the downloads that fill it."""

from __future__ import annotations

from speech_to_speech.models.catalogue import AssetRow, describe, download, print_models
from speech_to_speech.models.names import resolve

__all__ = ["AssetRow", "describe", "download", "print_models", "resolve"]

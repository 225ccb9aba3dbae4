"""Words of a text as two recognisers, or a recogniser and a writer, would agree on them."""

from __future__ import annotations

import re


def words(text: str) -> list[str]:
    """Lower case, without punctuation; hyphens part words."""
    return re.findall(r"[a-z0-9']+", text.lower())

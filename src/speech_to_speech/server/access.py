"""Who may connect: the key, the web origin, and the host name a browser was sent to."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from speech_to_speech.arguments_classes import ServerArguments
from speech_to_speech.arguments_classes.key_file import read_key
from speech_to_speech.errors import ConfigurationError

KEY_VARIABLE = "S2S_API_KEY"
_BROWSER_KEY_PREFIX = "openai-insecure-api-key."


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one server. `api_key` "" means none is needed (loopback only)."""

    api_key: str
    allowed_origins: tuple[str, ...]

    def refusal(self, headers: Mapping[str, str], protocols: list[str]) -> tuple[int, str] | None:
        """The HTTP status and one line for a request that may not connect; None for one that may."""
        if not self._origin_is_allowed(headers):
            return 403, f"the origin {headers.get('Origin', '')[:200]!r} may not connect; see --allowed_origins"
        if not self.api_key:
            if not _names_loopback(headers.get("Host", "")):
                return 403, "without an API key only loopback host names are served"
            return None
        if not any(_equal(key, self.api_key) for key in _keys(headers, protocols)):
            return 401, "Incorrect API key provided; send it as 'Authorization: Bearer <key>'"
        return None

    def _origin_is_allowed(self, headers: Mapping[str, str]) -> bool:
        origin = headers.get("Origin")
        if origin is None or origin in self.allowed_origins:
            return True
        return urlsplit(origin).netloc == headers.get("Host", "")


def access_rules(arguments: ServerArguments) -> Access:
    """The rules the options ask for. Raises `ConfigurationError` for an open server without a key."""
    key = read_key("--api_key_file", arguments.api_key_file, KEY_VARIABLE)
    if not key and not is_loopback(arguments.host):
        raise ConfigurationError(
            f"--host {arguments.host} is reachable from other machines: give a key with --api_key_file FILE "
            f"or the environment variable {KEY_VARIABLE}, or listen on 127.0.0.1"
        )
    origins = tuple(origin.strip() for origin in arguments.allowed_origins.split(",") if origin.strip())
    return Access(key, origins)


def is_loopback(host: str) -> bool:
    """True for addresses and names that only this machine can reach."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _names_loopback(host_header: str) -> bool:
    """A page of another site can point its own name at 127.0.0.1; the Host header gives it away."""
    return is_loopback(urlsplit(f"//{host_header}").hostname or "")


def _keys(headers: Mapping[str, str], protocols: list[str]) -> list[str]:
    scheme, _, bearer = headers.get("Authorization", "").partition(" ")
    keys = [bearer.strip()] if scheme.lower() == "bearer" else []
    keys += [name[len(_BROWSER_KEY_PREFIX) :] for name in protocols if name.startswith(_BROWSER_KEY_PREFIX)]
    return [key for key in keys if key]


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())

"""The settings of a registry client, under the names that Confluent's clients use."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from strandline.ports.tls import TlsSettings
from strandline.security.tls_settings import TLS_DEFAULTS, tls_settings_of
from strandline.serde.bounded_cache import ENTRIES_MAX

_PREFIX: Final = "schema.registry."
# The name that confluent-kafka uses for a PEM file with certificate authorities.
_CA: Final = "ssl.ca.location"
_NUMBERS: Final = {
    "timeout": 30.0,
    "max.retries": 3.0,
    "retries.wait.ms": 500.0,
    "retries.max.wait.ms": 20_000.0,
    "cache.capacity": float(ENTRIES_MAX),
    "cache.latest.ttl.sec": 60.0,
}
_LOGINS: Final = ("basic.auth.user.info", "bearer.auth.token")
# Settings of Confluent's clients that have no effect here: a user in the URL is used, and so is basic.auth.user.info.
_IGNORED: Final = ("basic.auth.credentials.source", "bearer.auth.credentials.source")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryClientSettings:
    """The settings of one registry client."""

    urls: tuple[str, ...]
    authorization: str | None = field(default=None, repr=False)
    tls: TlsSettings | None = None
    timeout_s: float = 30.0
    retries_max: int = 3
    wait_s: float = 0.5
    wait_max_s: float = 20.0
    entries_max: int = ENTRIES_MAX
    latest_s: float = 60.0


def read_registry_settings(given: str | Mapping[str, Any]) -> RegistryClientSettings:
    """Returns the settings from a URL, or from keys and values. Raises ValueError, whose text has no secret."""
    if isinstance(given, str):
        text = given.strip()
        given = json.loads(text) if text.startswith("{") else {"url": text}
    values = {str(key).removeprefix(_PREFIX): value for key, value in given.items()}
    known = {"url", *TLS_DEFAULTS, _CA, *_NUMBERS, *_LOGINS, *_IGNORED}
    for key in values:
        if key not in known:
            raise ValueError(
                f"{key} is no setting of a registry client; there are {', '.join(sorted(known))}"
            )
    urls, login = _urls(str(values.get("url") or ""))
    numbers = {key: _number(key, values.get(key, default)) for key, default in _NUMBERS.items()}
    return RegistryClientSettings(
        urls=urls,
        authorization=_authorization(values, login),
        tls=_tls(values),
        timeout_s=numbers["timeout"],
        retries_max=int(numbers["max.retries"]),
        wait_s=numbers["retries.wait.ms"] / 1000,
        wait_max_s=numbers["retries.max.wait.ms"] / 1000,
        entries_max=max(1, int(numbers["cache.capacity"])),
        latest_s=numbers["cache.latest.ttl.sec"],
    )


def _number(key: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if number < 0:
        raise ValueError(f"{key} must be a number that is not negative, not {value!r}")
    return number


def _urls(text: str) -> tuple[tuple[str, ...], str | None]:
    """Returns the URLs without user and password, and the first login that is in one of them."""
    urls, login = [], None
    for each in filter(None, (part.strip() for part in text.split(","))):
        parts = urlsplit(each)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                "url must be http://host:port or https://host:port, or several with commas between"
            )
        if parts.username is not None:
            login = login or f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        place = parts.netloc.rpartition("@")[2]
        urls.append(urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", "")))
    if not urls:
        raise ValueError("url is missing: the registry's, such as http://localhost:8081")
    return tuple(urls), login


def _authorization(values: Mapping[str, Any], login: str | None) -> str | None:
    token = values.get("bearer.auth.token")
    user = values.get("basic.auth.user.info") or login
    if token and user:
        raise ValueError("basic.auth.user.info and bearer.auth.token are both set: one login is enough")
    if token:
        return f"Bearer {token}"
    return None if not user else "Basic " + b64encode(str(user).encode()).decode()


def _tls(values: Mapping[str, Any]) -> TlsSettings | None:
    """Returns the settings of TLS; None if there are none, and then the system's authorities are trusted."""
    given = {key: value for key, value in values.items() if key.startswith("ssl.") and value is not None}
    if not given:
        return None
    authorities = given.pop(_CA, None)
    if authorities is not None:
        given.setdefault("ssl.truststore.location", authorities)
    return tls_settings_of(given)

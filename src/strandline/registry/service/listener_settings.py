"""The settings of the registry's own port, by the names that Confluent's registry has for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from strandline.ports.tls import ClientAuth, TlsSettings
from strandline.security.tls_settings import TLS_DEFAULTS, tls_settings_of

_CLIENT_AUTH_KEY: Final = "ssl.client.authentication"
_LOGIN_DEFAULTS: Final = {"authentication.method": "NONE", "authentication.realm": "SchemaRegistry"}
_CLIENT_AUTH: Final = ("none", "requested", "required")
_METHODS: Final = ("NONE", "BASIC")


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """The settings of the port. `tls` is None for plain HTTP, and `realm` is None if no login is needed."""

    tls: TlsSettings | None = None
    realm: str | None = None


def listener_settings(given: Mapping[str, str]) -> ListenerSettings:
    """Returns the settings of these keys and values. Raises ValueError for an unknown key or an invalid value."""
    known = {**TLS_DEFAULTS, _CLIENT_AUTH_KEY: "NONE", **_LOGIN_DEFAULTS}
    for key in given:
        if key not in known:
            raise ValueError(f"{key} is not a setting of the registry's port; known are {', '.join(known)}")
    values = {**known, **given}
    method = str(values["authentication.method"]).upper()
    if method not in _METHODS:
        raise ValueError(f"authentication.method={method}: one of {', '.join(_METHODS)}")
    realm = str(values["authentication.realm"]) if method == "BASIC" else None
    has_key = any(key in given for key in ("ssl.keystore.location", "ssl.keystore.key"))
    if not has_key:
        return ListenerSettings(None, realm)
    return ListenerSettings(_tls(values), realm)


def _tls(values: Mapping[str, Any]) -> TlsSettings:
    auth = str(values[_CLIENT_AUTH_KEY]).lower()
    if auth not in _CLIENT_AUTH:
        raise ValueError(f"{_CLIENT_AUTH_KEY}={auth}: one of {', '.join(_CLIENT_AUTH).upper()}")

    made = tls_settings_of(values)
    return TlsSettings(
        protocols=made.protocols,
        cipher_suites=made.cipher_suites,
        key_store=made.key_store,
        trust_store=made.trust_store,
        client_auth=cast(ClientAuth, auth),
        checks_host_names=made.checks_host_names,
    )

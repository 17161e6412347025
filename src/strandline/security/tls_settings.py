"""Converts Kafka's settings `ssl.*` to the values from which the network makes a TLS context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from strandline.ports.tls import ClientAuth, TlsSettings, TlsStore

# Kafka's defaults, for those whose settings are not declared in `config`: the registry and its clients.
TLS_DEFAULTS: Final[Mapping[str, Any]] = {
    "ssl.keystore.type": "JKS",
    "ssl.keystore.location": None,
    "ssl.keystore.password": None,
    "ssl.keystore.certificate.chain": None,
    "ssl.keystore.key": None,
    "ssl.key.password": None,
    "ssl.truststore.type": "JKS",
    "ssl.truststore.location": None,
    "ssl.truststore.password": None,
    "ssl.truststore.certificates": None,
    "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
    "ssl.cipher.suites": "",
    "ssl.endpoint.identification.algorithm": "https",
}
_LISTS: Final = ("ssl.enabled.protocols", "ssl.cipher.suites")


def tls_settings(
    value: Callable[[str], Any], *, prefix: str = "", handshake_timeout_s: float = 30.0
) -> TlsSettings:
    """Returns the TLS settings. `value` returns the value of a key; `prefix` stands before the keys in the user's
    file."""
    algorithm = value("ssl.endpoint.identification.algorithm")
    return TlsSettings(
        prefix=prefix,
        protocols=tuple(value("ssl.enabled.protocols") or ()),
        cipher_suites=tuple(value("ssl.cipher.suites") or ()),
        key_store=TlsStore(
            kind=value("ssl.keystore.type"),
            location=value("ssl.keystore.location"),
            password=value("ssl.keystore.password"),
            certificates=value("ssl.keystore.certificate.chain"),
            key=value("ssl.keystore.key"),
            key_password=value("ssl.key.password"),
        ),
        trust_store=TlsStore(
            kind=value("ssl.truststore.type"),
            location=value("ssl.truststore.location"),
            password=value("ssl.truststore.password"),
            certificates=value("ssl.truststore.certificates"),
        ),
        checks_host_names=bool(algorithm),
        handshake_timeout_s=handshake_timeout_s,
    )


def tls_settings_of(values: Mapping[str, Any]) -> TlsSettings:
    """Returns the TLS settings from values as text, with Kafka's defaults for those that are missing."""
    merged = {**TLS_DEFAULTS, **values}

    def value(key: str) -> Any:
        found = merged[key]
        if key in _LISTS and isinstance(found, str):
            return [each.strip() for each in found.split(",") if each.strip()]
        return found

    return tls_settings(value)


def client_auth(value: Callable[[str], Any]) -> ClientAuth:
    """Returns whether a listener requires or requests certificates of clients."""
    return cast(ClientAuth, str(value("ssl.client.auth") or "none"))

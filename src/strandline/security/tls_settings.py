"""From the settings that Kafka names `ssl.*` to the values that the network makes a TLS context of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from strandline.ports.tls import ClientAuth, TlsSettings, TlsStore


def tls_settings(
    value: Callable[[str], Any], *, prefix: str = "", handshake_timeout_s: float = 30.0
) -> TlsSettings:
    """`value` gives the value of a key; `prefix` is what stands before the keys in the user's file."""
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


def client_auth(value: Callable[[str], Any]) -> ClientAuth:
    """Whether a listener asks clients for certificates."""
    return cast(ClientAuth, str(value("ssl.client.auth") or "none"))

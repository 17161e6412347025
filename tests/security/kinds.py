"""The kinds of secured listeners that clients are tried on, and brokers that have them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import BrokerProcess, running_broker

Kind = tuple[str, str, str]  # protocol, mechanism, client certificates

KINDS: list[Kind] = [
    ("SSL", "", "none"),
    ("SSL", "", "required"),
    ("SASL_PLAINTEXT", "PLAIN", "none"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256", "none"),
    ("SASL_SSL", "PLAIN", "none"),
    ("SASL_SSL", "SCRAM-SHA-512", "required"),
]


def name_of(kind: Kind) -> str:
    return "-".join(filter(None, kind))


@contextmanager
def secured_broker(kind: Kind, directory: Path) -> Iterator[BrokerProcess]:
    protocol, mechanism, client_auth = kind
    security = DevelopmentSecurity(directory, protocol, mechanism or "PLAIN", client_auth=client_auth)
    with running_broker(security=security) as started:
        yield started

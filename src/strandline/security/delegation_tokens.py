"""Delegation tokens (KIP-48): a token's secret is the HMAC of its id with `delegation.token.secret.key`."""

from __future__ import annotations

import hmac
from base64 import b64encode

from strandline.security.principal import parse_principal
from strandline.security.scram import ITERATIONS_MIN, TokenCredential, credential_for
from strandline.wire.records.metadata import DelegationTokenRecord


def token_hmac(token_id: str, secret: str) -> bytes:
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def token_credential(mechanism: str, record: DelegationTokenRecord, secret: str) -> TokenCredential:
    """Returns the token's owner, its SCRAM credential (whose password is the HMAC in base64), and the time of its
    end."""
    password = b64encode(token_hmac(record.token_id, secret)).decode()
    salt = hmac.digest(secret.encode(), b"salt " + record.token_id.encode(), "sha256")
    credential = credential_for(mechanism, password, salt, ITERATIONS_MIN)
    owner = parse_principal(record.owner)._replace(is_token_authenticated=True)
    return owner, credential, record.expiration_timestamp

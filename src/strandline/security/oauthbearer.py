"""SASL OAUTHBEARER (RFC 7628, KIP-255), both sides: a token instead of a password.

A server that refuses a token sends a challenge in JSON, which the client acknowledges with one byte before the login
fails. The standard requires it, and Kafka's clients wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from strandline.security.exchange import AuthenticationFailed
from strandline.security.principal import Principal, user

_SEPARATOR: Final = "\x01"
_FIRST: Final = re.compile(r"n,(?:a=([^,]*))?,\x01((?:[A-Za-z]+=[^\x01]*\x01)+)\x01", re.DOTALL)
_REFUSED: Final = b'{"status":"invalid_token"}'


class VerifiedToken(NamedTuple):
    """The contents of a verified token."""

    subject: str
    expires_at_ms: int


class OAuthBearerServer:
    """The server's side; `verify` raises AuthenticationFailed for a token that cannot be accepted."""

    def __init__(self, verify: Callable[[str], VerifiedToken]) -> None:
        self._verify = verify
        self._refusal: AuthenticationFailed | None = None
        self.principal: Principal | None = None
        self.expires_at_ms: int | None = None

    def step(self, message: bytes) -> bytes:
        if self._refusal is not None:
            raise self._refusal
        try:
            match = _FIRST.fullmatch(message.decode())
        except UnicodeDecodeError:
            match = None
        if match is None or self.principal is not None:
            raise AuthenticationFailed("Invalid OAUTHBEARER client first message")
        authorization, pairs = match.groups()
        attributes = dict(pair.split("=", 1) for pair in pairs.split(_SEPARATOR) if pair)
        scheme, _, token = attributes.get("auth", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise AuthenticationFailed("Invalid OAUTHBEARER client first message: 'auth' has no Bearer token")
        try:
            verified = self._verify(token.strip())
        except AuthenticationFailed as refusal:
            self._refusal = refusal
            return _REFUSED
        if authorization and authorization != verified.subject:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from the token's"
            )
        self.principal = user(verified.subject)
        self.expires_at_ms = verified.expires_at_ms
        return b""


class OAuthBearerClient:
    def __init__(self, token: str) -> None:
        self._token = token

    def first(self) -> bytes:
        return f"n,,{_SEPARATOR}auth=Bearer {self._token}{_SEPARATOR}{_SEPARATOR}".encode()

    def step(self, challenge: bytes) -> bytes | None:
        return _SEPARATOR.encode() if challenge else None

"""SASL PLAIN (RFC 4616): user and password in clear text, so it is only for TLS or a trusted network."""

from __future__ import annotations

from collections.abc import Callable

from strandline.security.exchange import AuthenticationFailed
from strandline.security.principal import Principal, user

_TOKENS = 3


class PlainServer:
    """The server's side; `is_valid` checks a user's password."""

    expires_at_ms = None

    def __init__(self, is_valid: Callable[[str, str], bool]) -> None:
        self._is_valid = is_valid
        self.principal: Principal | None = None

    def step(self, message: bytes) -> bytes:
        if self.principal is not None:
            raise AuthenticationFailed("Invalid SASL/PLAIN response: the exchange is complete")
        try:
            tokens = message.decode().split("\0")
        except UnicodeDecodeError:
            raise AuthenticationFailed("Invalid SASL/PLAIN response: it is not in UTF-8") from None
        if len(tokens) != _TOKENS:
            raise AuthenticationFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}")
        authorization, name, password = tokens
        if not name:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        if not self._is_valid(name, password):
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        if authorization and authorization != name:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.principal = user(name)
        return b""


class PlainClient:
    def __init__(self, name: str, password: str) -> None:
        self._message = f"\0{name}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def step(self, challenge: bytes) -> None:
        return None

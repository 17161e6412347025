"""The SASL login of one connection, by the rules of Kafka's brokers (KIP-43, KIP-152, KIP-368).

1. Before the login only ApiVersions, SaslHandshake and SaslAuthenticate are served; all else closes the connection.
2. A handshake names a mechanism. After version 0 of it, SASL messages are frames without headers.
3. The response to a failed login is delayed (connection.failed.authentication.delay.ms), and closes the connection.
4. A session that has a lifetime is renewed by another handshake, for the same user and by the same mechanism. A request
   that comes after its end closes the connection.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode
from strandline.broker.node_context import NodeContext
from strandline.broker.security.listener_security import ListenerSecurity
from strandline.security.exchange import AuthenticationFailed, ServerExchange
from strandline.security.principal import Principal
from strandline.wire.api.k17_sasl_handshake import SaslHandshakeResponse

API_VERSIONS: Final = 18
SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
# Kafka refuses a renewal that comes sooner than this.
_RENEWAL_S_MIN: Final = 1.0


class Authentication:
    def __init__(self, node: NodeContext, listener: ListenerSecurity) -> None:
        self._clock = node.clock
        self.listener = listener
        self._mechanism = ""
        self._exchange: ServerExchange | None = None
        self.has_raw_frames = False
        self.has_failed = False
        self.principal: Principal | None = None
        self._expires_at: float | None = None  # on the monotonic clock
        self._logged_in_at = 0.0
        self.session_lifetime_ms = 0
        # True while every request is served without a check: logged in, without an end.
        self.is_settled = False

    def refusal(self, api_key: int) -> str | None:
        """Returns why a request is not served now; None if it is."""
        if self.has_failed:
            return "a request came after a failed login"
        if self._exchange is not None:
            served: tuple[int, ...] = (SASL_AUTHENTICATE,)
        elif self.principal is None:
            served = (API_VERSIONS, SASL_HANDSHAKE)
        elif self._expires_at is None or self._clock.monotonic() < self._expires_at:
            return None
        else:
            served = (SASL_HANDSHAKE,)  # late, but the client may still log in again
            if api_key not in served:
                return "the session has ended, and the client has not logged in again"
        return None if api_key in served else f"a request of API key {api_key} came before the login"

    def begin(self, mechanism: str, version: int) -> SaslHandshakeResponse:
        """Returns the response to a handshake."""
        mechanisms = self.listener.mechanisms
        if self.principal is not None and self._expires_at is None:
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
        if mechanism not in mechanisms or (self.principal is not None and mechanism != self._mechanism):
            self.has_failed = True
            return SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms
            )
        self._mechanism = mechanism
        self._exchange = self.listener.exchange(mechanism)
        self.has_raw_frames = version == 0
        return SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=mechanisms)

    def step(self, message: bytes) -> bytes:
        """Returns the next challenge; raises AuthenticationFailed, after which nothing is served any more."""
        assert self._exchange is not None
        try:
            challenge = self._exchange.step(message)
            if self._exchange.principal is not None:
                self._complete(self._exchange.principal, self._exchange.expires_at_ms)
        except AuthenticationFailed:
            self.has_failed = True
            raise
        return challenge

    @property
    def is_under_way(self) -> bool:
        return self._exchange is not None

    @property
    def mechanism(self) -> str:
        return self._mechanism

    def _complete(self, principal: Principal, credential_ends_ms: int | None) -> None:
        now = self._clock.monotonic()
        if self.principal is not None:
            if principal != self.principal:
                raise AuthenticationFailed(
                    f"Cannot change principals during re-authentication from {self.principal} to {principal}"
                )
            if now - self._logged_in_at < _RENEWAL_S_MIN:
                raise AuthenticationFailed("Re-authentication less than a second after the last login")
        lifetime_ms = self.listener.session_ms_max(self._mechanism)
        if credential_ends_ms is not None:
            left_ms = credential_ends_ms - self._clock.wall_ms()
            if left_ms <= 0:
                raise AuthenticationFailed("Authentication failed: the credential has expired")
            lifetime_ms = min(lifetime_ms, left_ms) if lifetime_ms > 0 else left_ms
        self.principal = principal
        self._exchange = None
        self.has_raw_frames = False
        self._logged_in_at = now
        self.session_lifetime_ms = max(0, lifetime_ms)
        self._expires_at = now + lifetime_ms / 1000 if lifetime_ms > 0 else None
        self.is_settled = self._expires_at is None

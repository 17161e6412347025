"""A client's connection to a listener with TLS, SASL or both: no request is served before the user is known."""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.broker.security.authentication import Authentication
from strandline.broker.security.listener_security import ListenerSecurity
from strandline.broker.server.connection import ClientConnection
from strandline.broker.server.server_context import ServerContext
from strandline.ports.network import Connection
from strandline.ports.tls import TlsError
from strandline.security.exchange import AuthenticationFailed
from strandline.wire.codec import DecodeError

_KEY_BYTES: Final = 2


class TlsClientConnection(ClientConnection):
    """A connection to an SSL listener; its user is in the client's certificate."""

    def __init__(
        self,
        server: ServerContext,
        listener: str,
        security: ListenerSecurity,
        *,
        is_controller_listener: bool = False,
    ) -> None:
        super().__init__(server, listener, is_controller_listener=is_controller_listener)
        self._security = security
        self._is_known = False

    def lost(self, error: Exception | None) -> None:
        if isinstance(error, TlsError):
            self._server.node.counters.add("failed_authentications")
            self._server.connection_events.warn(
                "TLS failed", peer=self.peer_address, listener=self.listener, why=error
            )
        super().lost(error)

    def _handle(self, frame: memoryview) -> None:
        if not self._is_known:
            self._is_known = True
            subject = None if self._connection is None else self._connection.peer_subject
            try:
                self.principal = self._security.principal_of_certificate(subject)
            except AuthenticationFailed as error:
                self._server.node.counters.add("failed_authentications")
                raise DecodeError(str(error)) from None
        super()._handle(frame)


class SaslClientConnection(TlsClientConnection):
    """A connection to a listener with SASL: see `security.authentication` for the rules."""

    def __init__(
        self,
        server: ServerContext,
        listener: str,
        security: ListenerSecurity,
        *,
        is_controller_listener: bool = False,
    ) -> None:
        super().__init__(server, listener, security, is_controller_listener=is_controller_listener)
        self._login = self.authentication = Authentication(server.node, security)
        self._deadline: asyncio.TimerHandle | None = None

    def connected(self, connection: Connection) -> None:
        self._frames.size_max = min(self._frames.size_max, self._security.receive_bytes_max)
        self._arm()
        super().connected(connection)

    def lost(self, error: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().lost(error)

    def _arm(self) -> None:
        seconds = self._security.authentication_timeout_s
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._overdue)

    def _overdue(self) -> None:
        if self._login.principal is not None:
            return
        if self._is_held:
            self._arm()  # it is held back, which is no fault of the client
        else:
            self._fail("the client did not log in in time")

    def logged_in(self) -> None:
        """Receives larger requests from now on, because the login is complete."""
        principal = self._login.principal
        assert principal is not None
        self.principal = principal
        self._frames.size_max = self._server.request_bytes_max
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _handle(self, frame: memoryview) -> None:
        login = self._login
        if login.is_settled:
            ClientConnection._handle(self, frame)
        elif login.has_raw_frames:
            self._handle_raw(frame)
        else:
            refusal = login.refusal(int.from_bytes(frame[:_KEY_BYTES], "big", signed=True))
            if refusal is not None:
                raise DecodeError(refusal)
            ClientConnection._handle(self, frame)

    def _handle_raw(self, frame: memoryview) -> None:
        """Handles a SASL message without a header, as after version 0 of the handshake."""
        if self._login.has_failed:
            return
        try:
            challenge = self._login.step(bytes(frame))
        except AuthenticationFailed as error:
            self.login_failed(error)
            asyncio.get_running_loop().call_later(self._security.failure_delay_s, self.close)
            return
        self._send_gathered()
        if self._connection is not None:
            self._connection.send(len(challenge).to_bytes(4, "big") + challenge)
        if self._login.principal is not None:
            self.logged_in()

    @property
    def failure_delay_s(self) -> float:
        return self._security.failure_delay_s

    def login_failed(self, error: AuthenticationFailed) -> None:
        self._server.node.counters.add("failed_authentications")
        self._server.connection_events.warn(
            "login failed",
            peer=self.peer_address,
            listener=self.listener,
            mechanism=self._login.mechanism,
            why=error,
        )

"""Logs a channel in by SASL, and again before the session ends (KIP-43, KIP-152, KIP-368)."""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.ports.network import ListeningSocket, Network, Peer
from strandline.ports.random import Random
from strandline.ports.tls import Tls, TlsSettings
from strandline.rpc.channel import Channel, ChannelClosed
from strandline.security.exchange import AuthenticationFailed
from strandline.security.login import Login
from strandline.wire.api.k17_sasl_handshake import SaslHandshakeRequest
from strandline.wire.api.k36_sasl_authenticate import SaslAuthenticateRequest

# A session is renewed at a random point between these shares of its lifetime, as in Kafka's clients.
_RENEWED_FROM: Final = 0.85
_RENEWED_UNTIL: Final = 0.95


class LoginRefused(ChannelClosed):
    """The other side refuses the login, or did not prove its identity."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class LoginVersions:
    """The versions of the two requests that both sides know."""

    __slots__ = ("authenticate", "handshake")

    def __init__(self, handshake: int = 1, authenticate: int = 2) -> None:
        self.handshake = handshake
        self.authenticate = authenticate


_NEWEST: Final = LoginVersions()


async def log_in(channel: Channel, login: Login, random: Random, versions: LoginVersions = _NEWEST) -> None:
    """Logs in, and has the session renewed before it ends; raises LoginRefused."""
    lifetime_ms = await _exchange(channel, login, versions)
    if lifetime_ms > 0:
        chance = random.below(1000) / 1000
        share = _RENEWED_FROM + (_RENEWED_UNTIL - _RENEWED_FROM) * chance
        renewal = _Renewal(channel, login, random, versions)
        asyncio.get_running_loop().call_later(lifetime_ms / 1000 * share, renewal.begin)


async def _exchange(channel: Channel, login: Login, versions: LoginVersions) -> int:
    """Exchanges the messages of a login; returns the lifetime of the session in milliseconds, 0 for one that does not
    end."""
    handshake = await channel.request(SaslHandshakeRequest(mechanism=login.mechanism), versions.handshake)
    if handshake.error_code != ErrorCode.NONE:
        offered = ", ".join(handshake.mechanisms) or "none"
        raise LoginRefused(
            handshake.error_code,
            f"the broker does not offer {login.mechanism} on this listener, but {offered}: "
            "set sasl.mechanism to one of these",
        )
    try:
        exchange = await login.begin()
        message: bytes | None = exchange.first()
        lifetime_ms = 0
        while message is not None:
            request = SaslAuthenticateRequest(auth_bytes=message)
            response = await channel.request(request, versions.authenticate)
            if response.error_code != ErrorCode.NONE:
                raise LoginRefused(
                    response.error_code, response.error_message or "the broker refuses the login"
                )
            lifetime_ms = response.session_lifetime_ms
            message = exchange.step(response.auth_bytes)
    except AuthenticationFailed as error:
        raise LoginRefused(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
    return lifetime_ms


class _Renewal:
    """A second login on the same channel. Other requests wait meanwhile, because the broker accepts none in between."""

    def __init__(self, channel: Channel, login: Login, random: Random, versions: LoginVersions) -> None:
        self._channel = channel
        self._login = login
        self._random = random
        self._versions = versions
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._channel.is_open:
            self._channel.hold()
            self._task = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        try:
            await log_in(self._channel, self._login, self._random, self._versions)
        except (ChannelClosed, OSError):
            self._channel.close()  # its user connects again, and gets the error of that
        finally:
            self._channel.release()


class SecuredNetwork:
    """A network whose connections to one kind of listener are encrypted, authenticated, or both."""

    def __init__(self, network: Network, tls: Tls | None, login: Login | None, random: Random) -> None:
        self._network = network
        self._tls = tls
        self._login = login
        self._random = random

    async def listen(self, host: str, port: int, accept: object, tls: Tls | None = None) -> ListeningSocket:
        raise AssertionError("listeners are opened on the network itself")

    async def connect(self, host: str, port: int, peer: Peer, tls: Tls | None = None) -> None:
        await self._network.connect(host, port, peer, self._tls)
        if self._login is not None:
            assert isinstance(peer, Channel)
            await log_in(peer, self._login, self._random)

    def tls(self, settings: TlsSettings, *, is_server: bool) -> Tls:
        return self._network.tls(settings, is_server=is_server)

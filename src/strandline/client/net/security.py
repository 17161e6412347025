"""How the connections of one client are secured: a TLS context, a login, both or neither."""

from __future__ import annotations

from typing import Any, Final

from strandline.base.ids import uuid_text
from strandline.client.config.config import ClientConfig
from strandline.client.errors import ConfigError
from strandline.client.world import ClientWorld
from strandline.ports.tls import Tls, TlsError
from strandline.security.exchange import OAUTHBEARER, PLAIN
from strandline.security.login import Login, login_of
from strandline.security.tls_settings import tls_settings

_JAAS: Final = "sasl.jaas.config"
_TOKEN: Final = "sasl.oauthbearer.token"


class ClientSecurity:
    """Made once for a client; raises ConfigError, which shows no secret, for settings that cannot be used."""

    def __init__(self, world: ClientWorld, config: ClientConfig) -> None:
        self._random = world.random
        protocol = config.text("security.protocol").upper()
        self.tls: Tls | None = None
        self.login: Login | None = None
        if protocol.endswith("SSL"):
            self.tls = _tls(world, config)
        if protocol.startswith("SASL"):
            self.login = self._login(config)

    def _login(self, config: ClientConfig) -> Login:
        mechanism = config.text("sasl.mechanism").upper()
        token = config.value(_TOKEN)
        if mechanism == OAUTHBEARER:
            if token is None:
                raise ConfigError(f"{_TOKEN} is missing: a token, or a function that returns one", key=_TOKEN)
            given = token if callable(token) else lambda: str(token)
            return login_of(mechanism, _JAAS, None, self._nonce, given)
        try:
            return login_of(mechanism, _JAAS, _jaas(config, mechanism), self._nonce)
        except ValueError as error:
            key = "sasl.mechanism" if mechanism not in str(error) else _JAAS
            raise ConfigError(str(error), key=key) from None

    def _nonce(self) -> str:
        return uuid_text(self._random.uuid()) + uuid_text(self._random.uuid())


def _jaas(config: ClientConfig, mechanism: str) -> str | None:
    """The text of sasl.jaas.config, or what stands for sasl.username and sasl.password."""
    text = config.optional_text(_JAAS)
    name, password = config.optional_text("sasl.username"), config.optional_text("sasl.password")
    if text is not None or name is None or password is None:
        return text
    module = "PlainLoginModule" if mechanism == PLAIN else "ScramLoginModule"
    return f'{module} required username="{_quoted(name)}" password="{_quoted(password)}";'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _tls(world: ClientWorld, config: ClientConfig) -> Tls:
    def value(name: str) -> Any:
        if name == "ssl.truststore.location" and config.value(name) is None:
            return config.value("ssl.ca.location")
        return config.value(name)

    seconds = config.seconds("socket.connection.setup.timeout.max.ms")
    try:
        return world.network.tls(tls_settings(value, handshake_timeout_s=seconds), is_server=False)
    except TlsError as error:
        raise ConfigError(str(error), key="ssl.keystore.location") from None

"""TLS contexts and logins from the settings of a client; only loaded for a client that uses them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from strandline.base.ids import uuid_text
from strandline.client.config.config import ClientConfig
from strandline.client.errors import ConfigError
from strandline.client.world import ClientWorld
from strandline.ports.tls import Tls, TlsError
from strandline.security.exchange import OAUTHBEARER, PLAIN
from strandline.security.jaas import parse_jaas
from strandline.security.login import Login, login_of
from strandline.security.tls_settings import tls_settings
from strandline.security.token_endpoint import ClientCredentials, TokenEndpoint

_JAAS: Final = "sasl.jaas.config"
_TOKEN: Final = "sasl.oauthbearer.token"
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"


class LoginSettings:
    """Makes the login that the settings of a client ask for."""

    def __init__(self, world: ClientWorld) -> None:
        self._world = world
        self._random = world.random

    def login(self, config: ClientConfig) -> Login:
        """Returns the login of the settings. Raises ConfigError, which shows no secret, for settings that cannot be
        used."""
        mechanism = config.text("sasl.mechanism").upper()
        if mechanism == OAUTHBEARER:
            return login_of(mechanism, _JAAS, None, self._nonce, self._tokens(config))
        try:
            return login_of(mechanism, _JAAS, _jaas(config, mechanism), self._nonce)
        except ValueError as error:
            key = "sasl.mechanism" if mechanism not in str(error) else _JAAS
            raise ConfigError(str(error), key=key) from None

    def _tokens(self, config: ClientConfig) -> Callable[[], Awaitable[str]]:
        """Returns the function that brings the token of each login: from the settings, or from an identity provider."""
        given = config.value(_TOKEN)
        if given is not None:

            async def token() -> str:
                return str(given() if callable(given) else given)

            return token
        if config.optional_text(_ENDPOINT) is None:
            raise ConfigError(
                f"{_TOKEN} is missing: a token, or a function that returns one; or set {_ENDPOINT}",
                key=_TOKEN,
            )
        if self._world.web is None:
            raise ConfigError(f"{_ENDPOINT} cannot be reached from here", key=_ENDPOINT)
        return TokenEndpoint(self._world.web, self._world.clock, _token_request(config)).token

    def _nonce(self) -> str:
        return uuid_text(self._random.uuid()) + uuid_text(self._random.uuid())


def _token_request(config: ClientConfig) -> ClientCredentials:
    text = config.optional_text(_JAAS)
    try:
        options = {} if text is None else parse_jaas(_JAAS, text).options
    except ValueError as error:
        raise ConfigError(str(error), key=_JAAS) from None
    prefix = "sasl.oauthbearer.client.credentials."
    client_id = config.optional_text(f"{prefix}client.id") or options.get("clientId")
    secret = config.optional_text(f"{prefix}client.secret") or options.get("clientSecret")
    if not client_id or secret is None:
        raise ConfigError(
            f"{prefix}client.id and {prefix}client.secret are missing: {_ENDPOINT} needs them", key=_ENDPOINT
        )
    return ClientCredentials(
        url=config.text(_ENDPOINT),
        client_id=client_id,
        client_secret=secret,
        scope=config.optional_text("sasl.oauthbearer.scope") or options.get("scope"),
    )


def _jaas(config: ClientConfig, mechanism: str) -> str | None:
    """Returns the text of sasl.jaas.config, or the text that means the same as sasl.username and sasl.password."""
    text = config.optional_text(_JAAS)
    name, password = config.optional_text("sasl.username"), config.optional_text("sasl.password")
    if text is not None or name is None or password is None:
        return text
    module = "PlainLoginModule" if mechanism == PLAIN else "ScramLoginModule"
    return f'{module} required username="{_quoted(name)}" password="{_quoted(password)}";'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def tls_of(world: ClientWorld, config: ClientConfig) -> Tls:
    """Returns TLS by the settings. Raises ConfigError for files that cannot be used."""

    def value(name: str) -> Any:
        if name == "ssl.truststore.location" and config.value(name) is None:
            return config.value("ssl.ca.location")
        return config.value(name)

    seconds = config.seconds("socket.connection.setup.timeout.max.ms")
    try:
        return world.network.tls(tls_settings(value, handshake_timeout_s=seconds), is_server=False)
    except TlsError as error:
        raise ConfigError(str(error), key="ssl.keystore.location") from None

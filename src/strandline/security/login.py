"""The login of a client: its mechanism, and an exchange for each connection.

`login_of` makes one from Kafka's settings: `sasl.mechanism` and the options of `sasl.jaas.config`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from strandline.security.exchange import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    ClientExchange,
    unsupported_mechanism,
)
from strandline.security.jaas import parse_jaas
from strandline.security.oauthbearer import OAuthBearerClient
from strandline.security.plain import PlainClient
from strandline.security.scram import ScramClient, ScramSecret


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    mechanism: str
    begin: Callable[[], Awaitable[ClientExchange]] = field(repr=False)


def login_of(
    mechanism: str,
    key: str,
    jaas: str | None,
    nonce: Callable[[], str],
    token: Callable[[], Awaitable[str]] | None = None,
) -> Login:
    """Returns the login that settings describe; raises ValueError, which shows no secret, if they cannot be used.

    `key` is the name of the setting with the options, `token` returns tokens for OAUTHBEARER.
    """
    if mechanism not in MECHANISMS:
        raise ValueError(unsupported_mechanism(mechanism))
    if mechanism == OAUTHBEARER and token is not None:
        return _bearer_login(token)
    if jaas is None:
        raise ValueError(
            f"{key} is missing: {mechanism} needs it. Write it as "
            f'{_module(mechanism)} required username="..." password="...";'
        )
    options = parse_jaas(key, jaas).options
    name, password = options.get("username"), options.get("password")
    if not name or password is None:
        raise ValueError(f"{key} has no username or no password for {mechanism}")
    if mechanism == PLAIN:
        return _login(mechanism, lambda: PlainClient(name, password))
    is_token = options.get("tokenauth", "").lower() == "true"
    secret = ScramSecret(mechanism, name, password, is_token=is_token)
    return _login(mechanism, lambda: ScramClient(secret, nonce()))


def _login(mechanism: str, exchange: Callable[[], ClientExchange]) -> Login:
    async def begin() -> ClientExchange:
        return exchange()

    return Login(mechanism=mechanism, begin=begin)


def _bearer_login(token: Callable[[], Awaitable[str]]) -> Login:
    async def begin() -> ClientExchange:
        return OAuthBearerClient(await token())

    return Login(mechanism=OAUTHBEARER, begin=begin)


def _module(mechanism: str) -> str:
    kind = "plain.Plain" if mechanism == PLAIN else "scram.Scram"
    return f"org.apache.kafka.common.security.{kind}LoginModule"

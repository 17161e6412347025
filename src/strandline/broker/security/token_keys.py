"""The keys of OAUTHBEARER tokens, which are fetched from the URL of the settings, and again after a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from strandline.broker.node_context import NodeContext
from strandline.config import InvalidConfig
from strandline.config.listener_values import ListenerValues
from strandline.security.exchange import AuthenticationFailed
from strandline.security.jwt_verification import (
    TokenRules,
    UnknownKey,
    UnusableKeys,
    parse_jwks,
    verify_token,
)
from strandline.security.oauthbearer import VerifiedToken

_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_FILE: Final = "file://"
_WEB: Final = ("https://", "http://")
_OK: Final = 200
# A token with an unknown key causes another fetch, but not more often than this.
_READ_AGAIN_S: Final = 10.0


class TokenKeys:
    """Sets of keys by their URL."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._sets: dict[str, tuple[float, dict[str, Any]]] = {}

    async def load(self, values: ListenerValues) -> None:
        """Reads the keys of a listener before it is opened; raises InvalidConfig if they cannot be read."""
        url = str(values.value(_URL))
        try:
            keys = self._read(url) if url.startswith(_FILE) else await self._fetch(url)
            self._sets[url] = (self._node.clock.monotonic(), keys)
        except (UnusableKeys, OSError) as error:
            raise InvalidConfig(_URL, url, str(error)) from None

    def verifier(self, values: ListenerValues) -> Callable[[str], VerifiedToken]:
        """Returns a function that checks a token by the settings of a listener."""
        url = str(values.value(_URL))
        rules = TokenRules(
            audience=_strings(values, "sasl.oauthbearer.expected.audience"),
            issuer=_text(values, "sasl.oauthbearer.expected.issuer"),
            subject_claim=_text(values, "sasl.oauthbearer.sub.claim.name") or "sub",
            scope_claim=_text(values, "sasl.oauthbearer.scope.claim.name") or "scope",
            clock_skew_s=_int(values, "sasl.oauthbearer.clock.skew.seconds"),
        )
        refresh_s = _int(values, "sasl.oauthbearer.jwks.endpoint.refresh.ms") / 1000

        def verify(token: str) -> VerifiedToken:
            keys = self._keys(url, refresh_s)
            try:
                return verify_token(token, keys, rules)
            except UnknownKey:
                return verify_token(token, self._keys(url, _READ_AGAIN_S), rules)

        return verify

    def _keys(self, url: str, age_s_max: float) -> dict[str, Any]:
        now = self._node.clock.monotonic()
        read_at, keys = self._sets.get(url, (float("-inf"), {}))
        if now - read_at > age_s_max:
            self._sets[url] = (now, keys)
            if url.startswith(_FILE):
                try:
                    keys = self._read(url)
                except (UnusableKeys, OSError) as error:
                    self._not_read(url, error)
                self._sets[url] = (now, keys)
            else:
                # The login does not wait for it; a client whose token has an unknown key logs in again.
                self._node.tasks.start(self._fetch_again(url))
        if not keys:
            raise AuthenticationFailed("Authentication failed: this broker cannot check tokens at the moment")
        return keys

    def _read(self, url: str) -> dict[str, Any]:
        return parse_jwks(self._node.disk.read(url.removeprefix(_FILE)))

    async def _fetch(self, url: str) -> dict[str, Any]:
        if self._node.web is None or not url.startswith(_WEB):
            raise UnusableKeys(f"{_URL} must begin with https://, http:// or file://")
        response = await self._node.web.request("GET", url, headers={"accept": "application/json"})
        if response.status != _OK:
            raise UnusableKeys(f"the response has status {response.status}")
        return parse_jwks(response.body)

    async def _fetch_again(self, url: str) -> None:
        try:
            keys = await self._fetch(url)
        except (UnusableKeys, OSError) as error:
            self._not_read(url, error)
        else:
            self._sets[url] = (self._node.clock.monotonic(), keys)

    def _not_read(self, url: str, error: Exception) -> None:
        """Logs the failure; the keys that were read before stay in use."""
        self._node.events.error("keys of tokens cannot be read", url=url, error=error)


def _text(values: ListenerValues, name: str) -> str | None:
    value = values.value(name)
    return None if value is None else str(value)


def _int(values: ListenerValues, name: str) -> int:
    value = values.value(name)
    assert isinstance(value, int), name
    return value


def _strings(values: ListenerValues, name: str) -> tuple[str, ...]:
    value = values.value(name)
    assert isinstance(value, tuple), name
    return value

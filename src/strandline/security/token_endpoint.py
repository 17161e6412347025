"""Fetches OAUTHBEARER tokens from an identity provider (KIP-768), with the client's credentials.

A token is used for every login until four fifths of its lifetime have passed, as in Kafka's clients; simultaneous
logins share one request.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode, urlsafe_b64decode
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from strandline.ports.clock import Clock
from strandline.ports.web import Web, WebError
from strandline.security.exchange import AuthenticationFailed

_USED_FOR: Final = 0.8  # the share of its lifetime
_LIFETIME_S: Final = 300.0  # the lifetime of a token that does not name one
_FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    timeout_s: float = 10.0


class TokenEndpoint:
    def __init__(self, web: Web, clock: Clock, request: ClientCredentials) -> None:
        self._web = web
        self._clock = clock
        self._request = request
        self._token = ""
        self._use_until = float("-inf")
        self._lock = asyncio.Lock()

    async def token(self) -> str:
        """Returns a token that is still valid for a while; raises AuthenticationFailed, which shows no secret."""
        async with self._lock:
            if self._clock.monotonic() >= self._use_until:
                self._token, lifetime_s = await self._ask()
                self._use_until = self._clock.monotonic() + lifetime_s * _USED_FOR
            return self._token

    async def _ask(self) -> tuple[str, float]:
        asked = self._request
        form = {"grant_type": "client_credentials"} | ({"scope": asked.scope} if asked.scope else {})
        login = b64encode(f"{asked.client_id}:{asked.client_secret}".encode()).decode()
        headers = {"authorization": f"Basic {login}", "content-type": _FORM, "accept": "application/json"}
        try:
            response = await self._web.request(
                "POST", asked.url, headers=headers, body=urlencode(form).encode(), timeout_s=asked.timeout_s
            )
        except WebError as error:
            raise AuthenticationFailed(f"no token could be fetched: {error}") from error
        if response.status != 200:
            raise AuthenticationFailed(f"{asked.url} refuses to give a token: status {response.status}")
        try:
            given = json.loads(response.body)
            token = str(given["access_token"])
            lifetime_s = float(given.get("expires_in") or self._lifetime_of(token))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise AuthenticationFailed(f"the response of {asked.url} has no access_token") from None
        return token, lifetime_s

    def _lifetime_of(self, token: str) -> float:
        """Returns the lifetime by the token's own claim, which only the broker verifies."""
        try:
            payload = token.split(".")[1]
            claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            return float(claims["exp"]) - self._clock.wall_ms() / 1000
        except (ValueError, IndexError, KeyError, TypeError):
            return _LIFETIME_S

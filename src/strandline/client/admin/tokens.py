"""Admin calls about delegation tokens (KIP-48): what a user lets others log in with for a while."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from strandline.base.errors import ErrorCode
from strandline.client.admin.calls import AdminBase, check
from strandline.wire.api.k38_create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from strandline.wire.api.k39_renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from strandline.wire.api.k40_expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from strandline.wire.api.k41_describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A token: its id is a user's name for SCRAM, and its HMAC, in base64, the password."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    hmac: bytes = field(repr=False)


class TokenAdmin(AdminBase):
    """The calls about delegation tokens. Principals are texts such as `User:alice`."""

    async def create_token(
        self,
        *,
        owner: str | None = None,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = -1,
        timeout: float | None = None,
    ) -> DelegationToken:
        """Creates a token of the user that asks, or of `owner`; -1 leaves its lifetime to the brokers."""
        deadline = self._deadline(timeout)
        kind, name = (None, None) if owner is None else _parts(owner)
        names = tuple(renewers)
        request = CreateDelegationTokenRequest(
            owner_principal_type=kind,
            owner_principal_name=name,
            renewers=tuple(
                CreatableRenewers(principal_type=kind, principal_name=name)
                for kind, name in map(_parts, names)
            ),
            max_lifetime_ms=max_lifetime_ms,
        )

        async def once() -> DelegationToken:
            response = await self._call_controller(request, CreateDelegationTokenResponse, deadline)
            _check(response.error_code)
            return DelegationToken(
                token_id=response.token_id,
                owner=f"{response.principal_type}:{response.principal_name}",
                requester=f"{response.token_requester_principal_type}:{response.token_requester_principal_name}",
                renewers=names,
                issued_ms=response.issue_timestamp_ms,
                expires_ms=response.expiry_timestamp_ms,
                max_ms=response.max_timestamp_ms,
                hmac=response.hmac,
            )

        return await self._retry(once, deadline)

    async def describe_tokens(
        self, owners: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> list[DelegationToken]:
        """Returns the tokens of these owners, or all that the user may see."""
        deadline = self._deadline(timeout)
        wanted = None if owners is None else tuple(map(_parts, owners))
        request = DescribeDelegationTokenRequest(
            owners=None
            if wanted is None
            else tuple(
                DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
                for kind, name in wanted
            )
        )

        async def once() -> list[DelegationToken]:
            response = await self._call_controller(request, DescribeDelegationTokenResponse, deadline)
            _check(response.error_code)
            return [
                DelegationToken(
                    token_id=each.token_id,
                    owner=f"{each.principal_type}:{each.principal_name}",
                    requester=f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
                    renewers=tuple(f"{one.principal_type}:{one.principal_name}" for one in each.renewers),
                    issued_ms=each.issue_timestamp,
                    expires_ms=each.expiry_timestamp,
                    max_ms=each.max_timestamp,
                    hmac=each.hmac,
                )
                for each in response.tokens
            ]

        return await self._retry(once, deadline)

    async def renew_token(self, hmac: bytes, *, period_ms: int = -1, timeout: float | None = None) -> int:
        """Lets a token live for another period, and returns when it ends then."""
        deadline = self._deadline(timeout)
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)

        async def once() -> int:
            response = await self._call_controller(request, RenewDelegationTokenResponse, deadline)
            _check(response.error_code)
            return response.expiry_timestamp_ms

        return await self._retry(once, deadline)

    async def expire_token(self, hmac: bytes, *, period_ms: int = -1, timeout: float | None = None) -> int:
        """Ends a token after a period, or at once with -1, and returns when it ends."""
        deadline = self._deadline(timeout)
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)

        async def once() -> int:
            response = await self._call_controller(request, ExpireDelegationTokenResponse, deadline)
            _check(response.error_code)
            return response.expiry_timestamp_ms

        return await self._retry(once, deadline)


def _check(code: int) -> None:
    why = None
    if code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED:
        why = "tokens are for users who log in by SASL, and not by a token, or by a TLS certificate"
    elif code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED:
        why = "the brokers have no delegation.token.secret.key"
    check(code, why, "delegation tokens")


def _parts(principal: str) -> tuple[str, str]:
    """Splits a principal such as `User:alice` into type and name. The ValueError of any other text says how to write
    one."""
    kind, colon, name = principal.partition(":")
    if not colon or not kind or not name:
        raise ValueError(f"{principal} is no principal: write it as User:NAME")
    return kind, name

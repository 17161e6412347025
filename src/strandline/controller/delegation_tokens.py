"""Plans for delegation tokens (KIP-48): creation, renewal, expiry, and removal of expired tokens.

A token's HMAC is not in the metadata: `hmac_of` computes it from the token's id and the cluster's secret.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.controller.image import ClusterImage
from strandline.controller.scram import check_metadata_version
from strandline.wire.api.k38_create_delegation_token import (
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
from strandline.wire.records.metadata import DelegationTokenRecord, RemoveDelegationTokenRecord
from strandline.wire.schema import Message

# 3.6-IV2, the first metadata version with delegation tokens.
METADATA_VERSION_FOR_TOKENS: Final = 14
_USER: Final = "User"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenContext:
    """The facts that plans need besides the request: its sender, the time, and settings of the controller."""

    requester: str  # as User:name
    now_ms: int
    lifetime_ms_max: int
    expiry_ms: int
    hmac_of: Callable[[str], bytes] | None  # None without delegation.token.secret.key


def plan_create_token(
    image: ClusterImage, request: CreateDelegationTokenRequest, context: TokenContext, token_id: str
) -> Planned[CreateDelegationTokenResponse]:
    owner = context.requester
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type or _USER}:{request.owner_principal_name}"
    try:
        hmac_of = _hmac_of(image, context)
        if any(renewer.principal_type != _USER for renewer in request.renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    except KafkaError as error:
        return Planned(records=(), response=_created(owner, context, error.code))
    lifetime_ms = context.lifetime_ms_max
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    record = DelegationTokenRecord(
        owner=owner,
        requester=context.requester,
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issue_timestamp=context.now_ms,
        max_timestamp=context.now_ms + lifetime_ms,
        expiration_timestamp=context.now_ms + min(lifetime_ms, context.expiry_ms),
        token_id=token_id,
    )
    response = _created(owner, context, ErrorCode.NONE, record, hmac_of(token_id))
    return Planned(records=(record,), response=response)


def _created(
    owner: str,
    context: TokenContext,
    code: int,
    record: DelegationTokenRecord | None = None,
    secret: bytes = b"",
) -> CreateDelegationTokenResponse:
    kind, _, name = owner.partition(":")
    requester_kind, _, requester_name = context.requester.partition(":")
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=-1 if record is None else record.issue_timestamp,
        expiry_timestamp_ms=-1 if record is None else record.expiration_timestamp,
        max_timestamp_ms=-1 if record is None else record.max_timestamp,
        token_id="" if record is None else record.token_id,
        hmac=secret,
        throttle_time_ms=0,
    )


def plan_renew_token(
    image: ClusterImage, request: RenewDelegationTokenRequest, context: TokenContext
) -> Planned[RenewDelegationTokenResponse]:
    try:
        record = _record_of(image, request.hmac, context)
        period_ms = context.expiry_ms if request.renew_period_ms < 0 else request.renew_period_ms
        changed = _with_expiry(record, context.now_ms + period_ms)
    except KafkaError as error:
        refused = RenewDelegationTokenResponse(
            error_code=error.code, expiry_timestamp_ms=-1, throttle_time_ms=0
        )
        return Planned(records=(), response=refused)
    response = RenewDelegationTokenResponse(
        error_code=ErrorCode.NONE, expiry_timestamp_ms=changed.expiration_timestamp, throttle_time_ms=0
    )
    return Planned(records=(changed,), response=response)


def plan_expire_token(
    image: ClusterImage, request: ExpireDelegationTokenRequest, context: TokenContext
) -> Planned[ExpireDelegationTokenResponse]:
    """Plans a new expiry time; a negative period removes the token at once."""
    try:
        is_now = request.expiry_time_period_ms < 0
        record = _record_of(image, request.hmac, context, may_be_expired=is_now)
    except KafkaError as error:
        refused = ExpireDelegationTokenResponse(
            error_code=error.code, expiry_timestamp_ms=-1, throttle_time_ms=0
        )
        return Planned(records=(), response=refused)
    change: Message
    if is_now:
        change, expires_at = RemoveDelegationTokenRecord(token_id=record.token_id), context.now_ms
    else:
        changed = _with_expiry(record, context.now_ms + request.expiry_time_period_ms)
        change, expires_at = changed, changed.expiration_timestamp
    response = ExpireDelegationTokenResponse(
        error_code=ErrorCode.NONE, expiry_timestamp_ms=expires_at, throttle_time_ms=0
    )
    return Planned(records=(change,), response=response)


def plan_remove_expired_tokens(image: ClusterImage, now_ms: int) -> Planned[int]:
    ended = [
        RemoveDelegationTokenRecord(token_id=token.token_id)
        for token in image.delegation_tokens.values()
        if token.expiration_timestamp < now_ms
    ]
    return Planned(records=tuple(ended), response=len(ended))


def _hmac_of(image: ClusterImage, context: TokenContext) -> Callable[[str], bytes]:
    if context.hmac_of is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    check_metadata_version(image, METADATA_VERSION_FOR_TOKENS, "delegation tokens")
    return context.hmac_of


def _record_of(
    image: ClusterImage, secret: bytes, context: TokenContext, *, may_be_expired: bool = False
) -> DelegationTokenRecord:
    hmac_of = _hmac_of(image, context)
    for token in image.delegation_tokens.values():
        if hmac.compare_digest(hmac_of(token.token_id), secret):
            break
    else:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    if context.requester not in (token.owner, token.requester, *token.renewers):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    is_expired = token.max_timestamp < context.now_ms or token.expiration_timestamp < context.now_ms
    if is_expired and not may_be_expired:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return token


def _with_expiry(record: DelegationTokenRecord, expires_at_ms: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=record.owner,
        requester=record.requester,
        renewers=record.renewers,
        issue_timestamp=record.issue_timestamp,
        max_timestamp=record.max_timestamp,
        expiration_timestamp=min(record.max_timestamp, expires_at_ms),
        token_id=record.token_id,
    )

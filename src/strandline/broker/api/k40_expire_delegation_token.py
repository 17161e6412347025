"""ExpireDelegationToken (key 40), versions 1 and 2: ends a token, now or at another time (KIP-48).

The controller decides. Errors: DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_OWNER_MISMATCH, DELEGATION_TOKEN_EXPIRED,
and those of 38.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.delegation_tokens import decided_for_user
from strandline.wire.api.k40_expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

REQUEST = ExpireDelegationTokenRequest

handle = decided_for_user


def refuse(request: ExpireDelegationTokenRequest, error: KafkaError) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1, throttle_time_ms=0)

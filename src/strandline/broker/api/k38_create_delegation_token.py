"""CreateDelegationToken (key 38), versions 1 to 3: creates a token for its requester or another user (KIP-48, KIP-373).

The controller decides. Errors: DELEGATION_TOKEN_AUTH_DISABLED without delegation.token.secret.key,
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, INVALID_PRINCIPAL_TYPE, UNSUPPORTED_VERSION while metadata.version is
below 3.6-IV2.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.delegation_tokens import decided_for_user
from strandline.wire.api.k38_create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

REQUEST = CreateDelegationTokenRequest

handle = decided_for_user


def refuse(request: CreateDelegationTokenRequest, error: KafkaError) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type="",
        principal_name="",
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
        token_id="",
        hmac=b"",
        throttle_time_ms=0,
    )

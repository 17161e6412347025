"""DescribeUserScramCredentials (key 50), version 0: the users with SCRAM credentials, without secrets (KIP-554).

Errors by user: RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE.
"""

from __future__ import annotations

from collections import Counter

from strandline.base.errors import ErrorCode
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k50_describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

REQUEST = DescribeUserScramCredentialsRequest


def handle(
    services: Services, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    credentials = services.image.scram_credentials
    known: dict[str, list[CredentialInfo]] = {}
    for (mechanism, name), record in sorted(credentials.items()):
        known.setdefault(name, []).append(CredentialInfo(mechanism=mechanism, iterations=record.iterations))
    times = Counter(user.name for user in request.users or ())
    results = []
    for name in times or sorted(known):
        code, message = int(ErrorCode.NONE), None
        if times[name] > 1:
            code = ErrorCode.DUPLICATE_RESOURCE
            message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        elif name not in known:
            code = ErrorCode.RESOURCE_NOT_FOUND
            message = f"Attempt to describe a user credential that does not exist: {name}"
        results.append(
            DescribeUserScramCredentialsResult(
                user=name,
                error_code=code,
                error_message=message,
                credential_infos=() if code else tuple(known[name]),
            )
        )
    return DescribeUserScramCredentialsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, results=tuple(results)
    )

"""DescribeDelegationToken (key 41), versions 1 to 3: the tokens of some owners, or all (KIP-48).

Errors: DELEGATION_TOKEN_AUTH_DISABLED without delegation.token.secret.key, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. A user
sees the tokens that the user owns or may renew, and those for which the user has DESCRIBE on the token or
DESCRIBE_TOKENS on its owner. Differs from Kafka: without an authorizer Kafka shows every token to every user; here a
user sees the tokens that the user owns, has requested or may renew.
"""

from __future__ import annotations

from strandline.base.acls import AclOperation, AclResource
from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.delegation_tokens import check_may_ask
from strandline.broker.api.services import Services
from strandline.broker.api.topic_access import access_of
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.server.request_context import RequestContext
from strandline.security.delegation_tokens import token_hmac
from strandline.security.principal import parse_principal
from strandline.wire.api.k41_describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from strandline.wire.records.metadata import DelegationTokenRecord

REQUEST = DescribeDelegationTokenRequest


def handle(
    services: Services, context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    secret = services.node.config.optional_text("delegation.token.secret.key")
    try:
        check_may_ask(context)
    except KafkaError as error:
        return DescribeDelegationTokenResponse(error_code=error.code, tokens=(), throttle_time_ms=0)
    if secret is None:
        code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        return DescribeDelegationTokenResponse(error_code=code, tokens=(), throttle_time_ms=0)
    owners = None
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    user, access = str(context.principal), access_of(services, context)
    tokens = tuple(
        _described(token, secret)
        for token in services.image.delegation_tokens.values()
        if _is_requested(token, owners) and _may_see(token, user, access)
    )
    return DescribeDelegationTokenResponse(error_code=ErrorCode.NONE, tokens=tokens, throttle_time_ms=0)


def _is_requested(token: DelegationTokenRecord, owners: set[str] | None) -> bool:
    return owners is None or not owners.isdisjoint((token.owner, token.requester, *token.renewers))


def _may_see(token: DelegationTokenRecord, user: str, access: RequestAccess | None) -> bool:
    if user in (token.owner, token.requester, *token.renewers):
        return True
    return access is not None and (
        access.allows(AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN, token.token_id)
        or access.allows(AclOperation.DESCRIBE_TOKENS, AclResource.USER, token.owner)
    )


def _described(token: DelegationTokenRecord, secret: str) -> DescribedDelegationToken:
    owner, requester = parse_principal(token.owner), parse_principal(token.requester)
    renewers = [parse_principal(renewer) for renewer in token.renewers]
    return DescribedDelegationToken(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(token.token_id, secret),
        renewers=tuple(
            DescribedDelegationTokenRenewer(principal_type=each.kind, principal_name=each.name)
            for each in renewers
        ),
    )

"""The active controller's APIs for credentials in the metadata: SCRAM users and delegation tokens."""

from __future__ import annotations

from typing import Any

from strandline.base.ids import uuid_text
from strandline.broker.metadata.controller_runtime import ControllerRuntime
from strandline.controller import delegation_tokens as tokens
from strandline.controller.scram import plan_alter_scram_credentials
from strandline.security.delegation_tokens import token_hmac
from strandline.security.principal import Principal
from strandline.security.scram import MECHANISM_TYPES, credential_of
from strandline.wire.api.k38_create_delegation_token import CreateDelegationTokenRequest
from strandline.wire.api.k39_renew_delegation_token import RenewDelegationTokenRequest
from strandline.wire.api.k40_expire_delegation_token import ExpireDelegationTokenRequest
from strandline.wire.api.k51_alter_user_scram_credentials import AlterUserScramCredentialsRequest

CredentialRequest = (
    AlterUserScramCredentialsRequest
    | CreateDelegationTokenRequest
    | RenewDelegationTokenRequest
    | ExpireDelegationTokenRequest
)


async def decide_credentials(
    runtime: ControllerRuntime, request: CredentialRequest, principal: Principal
) -> Any:
    """Returns the response, once the decision is committed."""
    match request:
        case AlterUserScramCredentialsRequest():
            return await runtime.commit(
                lambda: plan_alter_scram_credentials(runtime.state.image, request, _derive)
            )
        case CreateDelegationTokenRequest():
            context, token_id = _context(runtime, principal), uuid_text(runtime.state.random.uuid())
            return await runtime.commit(
                lambda: tokens.plan_create_token(runtime.state.image, request, context, token_id)
            )
        case RenewDelegationTokenRequest():
            context = _context(runtime, principal)
            return await runtime.commit(
                lambda: tokens.plan_renew_token(runtime.state.image, request, context)
            )
        case ExpireDelegationTokenRequest():
            context = _context(runtime, principal)
            return await runtime.commit(
                lambda: tokens.plan_expire_token(runtime.state.image, request, context)
            )


def _context(runtime: ControllerRuntime, principal: Principal) -> tokens.TokenContext:
    config = runtime.state.configs.static
    secret = config.optional_text("delegation.token.secret.key")
    return tokens.TokenContext(
        requester=f"{principal.kind}:{principal.name}",
        now_ms=runtime.now_ms(),
        lifetime_ms_max=config.int("delegation.token.max.lifetime.ms"),
        expiry_ms=config.int("delegation.token.expiry.time.ms"),
        hmac_of=None if secret is None else lambda token_id: token_hmac(token_id, secret),
    )


def _derive(mechanism: int, salted: bytes) -> tuple[bytes, bytes]:
    credential = credential_of(MECHANISM_TYPES[mechanism], b"", salted, 0)
    return credential.stored_key, credential.server_key

"""AlterUserScramCredentials (key 51), version 0: creates, changes and removes SCRAM credentials (KIP-554).

The controller decides. Errors by user: UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM, RESOURCE_NOT_FOUND,
DUPLICATE_RESOURCE, UNSUPPORTED_VERSION while metadata.version is below 3.5-IV2; NOT_CONTROLLER.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.wire.api.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

REQUEST = AlterUserScramCredentialsRequest

handle = decided_by_controller


def refuse(request: AlterUserScramCredentialsRequest, error: KafkaError) -> AlterUserScramCredentialsResponse:
    names = dict.fromkeys(
        [each.name for each in request.deletions] + [each.name for each in request.upsertions]
    )
    return AlterUserScramCredentialsResponse(
        throttle_time_ms=0,
        results=tuple(
            AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=error.message)
            for name in names
        ),
    )

"""Plans for AlterUserScramCredentials (KIP-554): each user's change succeeds or fails by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.controller.features import METADATA_VERSION_FEATURE
from strandline.controller.image import ClusterImage
from strandline.wire.api.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from strandline.wire.records.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from strandline.wire.schema import Message

# 3.5-IV2, the first metadata version with SCRAM credentials.
METADATA_VERSION_FOR_SCRAM: Final = 11
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
_MECHANISMS: Final = (1, 2)

# Returns the stored key and the server key of a salted password, by the number of the mechanism.
DeriveKeys = Callable[[int, bytes], tuple[bytes, bytes]]


def plan_alter_scram_credentials(
    image: ClusterImage, request: AlterUserScramCredentialsRequest, derive: DeriveKeys
) -> Planned[AlterUserScramCredentialsResponse]:
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [
        *request.deletions,
        *request.upsertions,
    ]
    times = Counter((change.name, change.mechanism) for change in changes)
    errors: dict[str, KafkaError | None] = {}
    records: list[tuple[str, Message]] = []
    for change in changes:
        errors.setdefault(change.name, None)
        try:
            check_metadata_version(image, METADATA_VERSION_FOR_SCRAM, "SCRAM credentials")
            _check(image, change, times)
            records.append((change.name, _record(change, derive)))
        except KafkaError as error:
            errors[change.name] = errors[change.name] or error
    results = tuple(
        AlterUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None if error is None else error.message,
        )
        for name, error in errors.items()
    )
    return Planned(
        records=tuple(record for name, record in records if errors[name] is None),
        response=AlterUserScramCredentialsResponse(throttle_time_ms=0, results=results),
    )


def check_metadata_version(image: ClusterImage, needed: int, what: str) -> None:
    """Raises UNSUPPORTED_VERSION with the command that raises the version."""
    level = image.features.get(METADATA_VERSION_FEATURE, 0)
    if level < needed:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"The current metadata version ({level}) does not support {what}. Raise it: "
            f"kafka-features.sh --bootstrap-server HOST:PORT upgrade --feature metadata.version={needed}",
        )


def _check(
    image: ClusterImage,
    change: ScramCredentialDeletion | ScramCredentialUpsertion,
    times: Counter[tuple[str, int]],
) -> None:
    if times[change.name, change.mechanism] > 1:
        raise KafkaError(
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        )
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in _MECHANISMS:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if (change.mechanism, change.name) not in image.scram_credentials:
            raise KafkaError(
                ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
            )
    elif change.iterations < ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif change.iterations > ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _record(change: ScramCredentialDeletion | ScramCredentialUpsertion, derive: DeriveKeys) -> Message:
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    stored_key, server_key = derive(change.mechanism, change.salted_password)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=stored_key,
        server_key=server_key,
        iterations=change.iterations,
    )

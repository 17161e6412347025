"""Plans for CreateAcls and DeleteAcls, and the filters by which rules are found (KIP-290)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from strandline.base.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
)
from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.controller.image import ClusterImage
from strandline.wire.api.k29_describe_acls import AclDescription, DescribeAclsResource
from strandline.wire.api.k30_create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from strandline.wire.api.k31_delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from strandline.wire.records.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord

# The same limit as Kafka's MAX_RECORDS_PER_USER_OP.
_RECORDS_MAX: Final = 10_000

Rule = tuple[int, str, int, str, str, int, int]


class AclFilterFields(Protocol):
    """The fields that the filters of DescribeAcls and DeleteAcls have in common."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def plan_create_acls(
    image: ClusterImage, request: CreateAclsRequest, new_id: Callable[[], bytes]
) -> Planned[CreateAclsResponse]:
    """Plans the rules of a request. A rule that exists already is not written again, and is no error."""
    known = {_rule(record) for record in image.acls.values()}
    records: list[AccessControlEntryRecord] = []
    results = []
    for creation in request.creations:
        try:
            _check_creation(creation)
        except KafkaError as error:
            results.append(AclCreationResult(error_code=error.code, error_message=error.message))
            continue
        record = _record(creation, new_id())
        if _rule(record) not in known:
            known.add(_rule(record))
            records.append(record)
        results.append(AclCreationResult(error_code=ErrorCode.NONE, error_message=None))
    if len(records) > _RECORDS_MAX:
        refusal = KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"One request may create {_RECORDS_MAX:,} rules, and this one would create {len(records):,}. Use several.",
        )
        return Planned(records=(), response=refuse_create_acls(request, refusal))
    return Planned(
        records=tuple(records), response=CreateAclsResponse(throttle_time_ms=0, results=tuple(results))
    )


def refuse_create_acls(request: CreateAclsRequest, error: KafkaError) -> CreateAclsResponse:
    refused = AclCreationResult(error_code=error.code, error_message=error.message)
    return CreateAclsResponse(throttle_time_ms=0, results=(refused,) * len(request.creations))


def _check_creation(creation: AclCreation) -> None:
    name = creation.resource_name
    if creation.resource_type == AclResource.CLUSTER and name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise _invalid("Invalid empty resource name")
    if creation.resource_type == AclResource.ANY:
        raise _invalid("Invalid resourceType ANY")
    if creation.resource_pattern_type not in (AclPattern.LITERAL, AclPattern.PREFIXED):
        raise _invalid(f"Invalid patternType {AclPattern(creation.resource_pattern_type).name}")
    if creation.operation == AclOperation.ANY:
        raise _invalid("Invalid operation ANY")
    if creation.permission_type == AclPermission.ANY:
        raise _invalid("Invalid permissionType ANY")
    if ":" not in creation.principal:
        raise _invalid(
            f"Could not parse principal from `{creation.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _record(creation: AclCreation, record_id: bytes) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=record_id,
        resource_type=creation.resource_type,
        resource_name=creation.resource_name,
        pattern_type=creation.resource_pattern_type,
        principal=creation.principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )


def _rule(record: AccessControlEntryRecord) -> Rule:
    return (
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def plan_delete_acls(image: ClusterImage, request: DeleteAclsRequest) -> Planned[DeleteAclsResponse]:
    """Plans the removal of the rules that the filters match. A rule that several filters match is in the result of
    each."""
    removed: dict[bytes, None] = {}
    results = []
    for acl_filter in request.filters:
        found = list(matching_acls(image, acl_filter))
        removed |= dict.fromkeys(record.id for record in found)
        results.append(
            DeleteAclsFilterResult(
                error_code=ErrorCode.NONE,
                error_message=None,
                matching_acls=tuple(_deleted(record) for record in found),
            )
        )
    if len(removed) > _RECORDS_MAX:
        error = KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"One request may remove {_RECORDS_MAX:,} rules, and this one would remove {len(removed):,}. Use several.",
        )
        return Planned(records=(), response=refuse_delete_acls(request, error))
    return Planned(
        records=tuple(RemoveAccessControlEntryRecord(id=record_id) for record_id in removed),
        response=DeleteAclsResponse(throttle_time_ms=0, filter_results=tuple(results)),
    )


def refuse_delete_acls(request: DeleteAclsRequest, error: KafkaError) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(error_code=error.code, error_message=error.message, matching_acls=())
    return DeleteAclsResponse(throttle_time_ms=0, filter_results=(refused,) * len(request.filters))


def _deleted(record: AccessControlEntryRecord) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=record.resource_type,
        resource_name=record.resource_name,
        pattern_type=record.pattern_type,
        principal=record.principal,
        host=record.host,
        operation=record.operation,
        permission_type=record.permission_type,
    )


def describe_acls(image: ClusterImage, acl_filter: AclFilterFields) -> tuple[DescribeAclsResource, ...]:
    """Returns the rules that a filter matches, by resource."""
    found: dict[tuple[int, str, int], list[AclDescription]] = {}
    for record in matching_acls(image, acl_filter):
        place = (record.resource_type, record.resource_name, record.pattern_type)
        found.setdefault(place, []).append(
            AclDescription(
                principal=record.principal,
                host=record.host,
                operation=record.operation,
                permission_type=record.permission_type,
            )
        )
    return tuple(
        DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=tuple(acls))
        for (kind, name, pattern), acls in found.items()
    )


def matching_acls(image: ClusterImage, acl_filter: AclFilterFields) -> Iterable[AccessControlEntryRecord]:
    return (record for record in image.acls.values() if _matches(acl_filter, record))


def _matches(acl_filter: AclFilterFields, record: AccessControlEntryRecord) -> bool:
    return (
        acl_filter.resource_type_filter in (AclResource.ANY, record.resource_type)
        and _matches_name(acl_filter, record)
        and acl_filter.principal_filter in (None, record.principal)
        and acl_filter.host_filter in (None, record.host)
        and acl_filter.operation in (AclOperation.ANY, record.operation)
        and acl_filter.permission_type in (AclPermission.ANY, record.permission_type)
    )


def _matches_name(acl_filter: AclFilterFields, record: AccessControlEntryRecord) -> bool:
    """Returns True if a filter's name matches a rule; with the pattern type MATCH it matches every rule that applies to
    the name."""
    pattern, name = acl_filter.pattern_type_filter, acl_filter.resource_name_filter
    if pattern not in (AclPattern.ANY, AclPattern.MATCH, record.pattern_type):
        return False
    if name is None:
        return True
    if pattern != AclPattern.MATCH:
        return name == record.resource_name
    if record.pattern_type == AclPattern.PREFIXED:
        return name.startswith(record.resource_name)
    return record.resource_name in (name, WILDCARD)


def has_unknown_numbers(acl: AclFilterFields | AclCreation | DeleteAclsFilter) -> bool:
    """Returns True if a rule or filter has a number without a meaning, for which Kafka closes the connection."""
    if isinstance(acl, AclCreation):
        kind, pattern = acl.resource_type, acl.resource_pattern_type
    else:
        kind, pattern = acl.resource_type_filter, acl.pattern_type_filter
    return not (
        0 < kind <= max(AclResource)
        and 0 < pattern <= max(AclPattern)
        and 0 < acl.operation <= max(AclOperation)
        and 0 < acl.permission_type <= max(AclPermission)
    )

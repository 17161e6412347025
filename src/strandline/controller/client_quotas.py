"""Plans for AlterClientQuotas, and the filters of DescribeClientQuotas (KIP-546, KIP-612)."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.controller.image import ClusterImage, QuotaKey
from strandline.wire.api.k48_describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from strandline.wire.api.k48_describe_client_quotas import EntityData as DescribedEntity
from strandline.wire.api.k48_describe_client_quotas import EntryData as DescribedEntry
from strandline.wire.api.k48_describe_client_quotas import ValueData as DescribedValue
from strandline.wire.api.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityResult,
    EntryData,
    EntryResult,
    OpData,
)
from strandline.wire.records.metadata import ClientQuotaRecord, QuotaEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_TYPES: Final = (USER, CLIENT_ID, IP)
PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
# The largest value of a key that must be a whole number; None for a key that may have a fraction.
_USER_KEYS: Final = {
    PRODUCER_BYTE_RATE: 2**63 - 1,
    CONSUMER_BYTE_RATE: 2**63 - 1,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_IP_KEYS: Final = {CONNECTION_CREATION_RATE: 2**31 - 1}
_FRACTION_MIN: Final = 1e-6
_EXACT: Final = 0
_DEFAULT: Final = 1
_SPECIFIED: Final = 2


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def plan_alter_client_quotas(
    image: ClusterImage, request: AlterClientQuotasRequest
) -> Planned[AlterClientQuotasResponse]:
    """Plans changes of quotas. Each entity's changes succeed or fail by themselves."""
    records: list[ClientQuotaRecord] = []
    results = []
    seen: set[QuotaKey] = set()
    for entry in request.entries:
        code, message = int(ErrorCode.NONE), None
        try:
            entity = _checked_entity(entry)
            if entity in seen:
                raise _invalid(f"Ignoring duplicate entity {dict(entity)}")
            seen.add(entity)
            records += _changes(image, entity, entry)
        except KafkaError as error:
            code, message = error.code, error.message
        results.append(_result(entry, code, message))
    return Planned(
        records=() if request.validate_only else tuple(records),
        response=AlterClientQuotasResponse(throttle_time_ms=0, entries=tuple(results)),
    )


def refuse_alter_client_quotas(
    request: AlterClientQuotasRequest, error: KafkaError
) -> AlterClientQuotasResponse:
    entries = tuple(_result(entry, error.code, error.message) for entry in request.entries)
    return AlterClientQuotasResponse(throttle_time_ms=0, entries=entries)


def _result(entry: EntryData, code: int, message: str | None) -> EntryResult:
    return EntryResult(
        error_code=code,
        error_message=message,
        entity=tuple(
            EntityResult(entity_type=each.entity_type, entity_name=each.entity_name) for each in entry.entity
        ),
    )


def _checked_entity(entry: EntryData) -> QuotaKey:
    names: dict[str, str | None] = {}
    for each in entry.entity:
        if each.entity_type in names:
            raise _invalid(f"Invalid client quota entity, duplicate entity entry {each.entity_type}")
        if each.entity_type not in _TYPES:
            raise _invalid(f"Unhandled client quota entity type: {each.entity_type}")
        if each.entity_name == "":
            raise _invalid(f"Empty {each.entity_type} not supported")
        names[each.entity_type] = each.entity_name
    if not names:
        raise _invalid("Invalid empty client quota entity")
    if IP in names:
        if len(names) > 1:
            raise _invalid(
                "Invalid quota entity combination, an IP cannot be combined with a user or client id"
            )
        _check_address(names[IP])
    return tuple(sorted(names.items(), key=lambda item: item[0]))


def _check_address(name: str | None) -> None:
    """Checks that an IP entity is an address. Names are not resolved, because a quota applies to the address of a
    connection."""
    try:
        if name is not None:
            ip_address(name)
    except ValueError:
        raise _invalid(f"{name} is not a valid IP address. Host names are not resolved.") from None


def _changes(image: ClusterImage, entity: QuotaKey, entry: EntryData) -> Iterable[ClientQuotaRecord]:
    keys = [change.key for change in entry.ops]
    if len(set(keys)) < len(keys):
        raise _invalid(f"Duplicate quota key, not updating quotas for {dict(entity)}")
    present = image.client_quotas.get(entity, {})
    named = tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity)
    found = []
    for change in entry.ops:
        if change.remove:
            if change.key in present:
                found.append(ClientQuotaRecord(entity=named, key=change.key, value=0.0, remove=True))
            continue
        _check_value(_IP_KEYS if entity[0][0] == IP else _USER_KEYS, change)
        if present.get(change.key) != change.value:
            found.append(ClientQuotaRecord(entity=named, key=change.key, value=change.value, remove=False))
    return found


def _check_value(keys: dict[str, int] | dict[str, int | None], change: OpData) -> None:
    if change.key not in keys:
        raise _invalid(f"Invalid configuration key {change.key}")
    if not change.value > 0:  # this refuses NaN, too
        raise _invalid(f"Quota {change.key} must be greater than 0")
    highest = keys[change.key]
    if highest is not None:
        if change.value > highest:
            raise _invalid(f"Proposed value for {change.key} is too large.")
        if change.value % 1 > _FRACTION_MIN:
            raise _invalid(f"{change.key} cannot be a fractional value.")


def describe_client_quotas(
    image: ClusterImage, request: DescribeClientQuotasRequest
) -> tuple[DescribedEntry, ...]:
    """Returns the quotas that a filter matches; raises KafkaError if the filter is invalid."""
    wanted: dict[str, ComponentData] = {}
    for component in request.components:
        _check_component(component, wanted)
        wanted[component.entity_type] = component
    if IP in wanted and len(wanted) > 1:
        raise _invalid("Invalid entity filter component combination")
    return tuple(
        DescribedEntry(
            entity=tuple(DescribedEntity(entity_type=kind, entity_name=name) for kind, name in entity),
            values=tuple(DescribedValue(key=key, value=value) for key, value in quotas.items()),
        )
        for entity, quotas in image.client_quotas.items()
        if _matches(dict(entity), wanted, is_strict=request.strict)
    )


def _check_component(component: ComponentData, earlier: dict[str, ComponentData]) -> None:
    kind = component.entity_type
    if not kind:
        raise _invalid("Invalid empty entity type.")
    if kind in earlier:
        raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in _TYPES:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if component.match_type not in (_EXACT, _DEFAULT, _SPECIFIED):
        raise _invalid(f"Unknown match type {component.match_type}")
    if (component.match_type == _EXACT) != (component.match is not None):
        raise _invalid("A name belongs to an exact match and to no other match type")


def _matches(entity: dict[str, str | None], wanted: dict[str, ComponentData], *, is_strict: bool) -> bool:
    if is_strict and len(entity) != len(wanted):
        return False
    return all(
        kind in entity and (component.match_type == _SPECIFIED or entity[kind] == component.match)
        for kind, component in wanted.items()
    )

"""Plans for AlterConfigs and IncrementalAlterConfigs: each resource succeeds or fails by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.config import (
    Altered,
    ConfigAlteration,
    DynamicConfigs,
    RefusedAlteration,
    alter_client_metrics,
    alter_group,
    alter_topic,
    keep_broker_changes,
    keep_broker_replacement,
    replace_client_metrics,
    replace_group,
    replace_topic,
)
from strandline.controller.features import MIN_IN_SYNC_KEY, uses_eligible_leaders
from strandline.controller.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ClusterImage,
)
from strandline.controller.observers import OBSERVERS, check_observers
from strandline.wire.api.k33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from strandline.wire.api.k44_incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.wire.records.metadata import ClearElrRecord, ConfigRecord
from strandline.wire.schema import Message

ConfigResourceKey = tuple[int, str]

_REPLACE: Final[
    dict[int, Callable[[DynamicConfigs, str, Sequence[tuple[str, str | None]]], Altered | RefusedAlteration]]
] = {
    TOPIC_RESOURCE: replace_topic,
    BROKER_RESOURCE: keep_broker_replacement,
    CLIENT_METRICS_RESOURCE: replace_client_metrics,
    GROUP_RESOURCE: replace_group,
}
_ALTER: Final[
    dict[int, Callable[[DynamicConfigs, str, Sequence[ConfigAlteration]], Altered | RefusedAlteration]]
] = {
    TOPIC_RESOURCE: alter_topic,
    BROKER_RESOURCE: keep_broker_changes,
    CLIENT_METRICS_RESOURCE: alter_client_metrics,
    GROUP_RESOURCE: alter_group,
}


def plan_alter_configs(
    image: ClusterImage, configs: DynamicConfigs, request: AlterConfigsRequest
) -> Planned[AlterConfigsResponse]:
    records: list[Message] = []
    responses = []
    resources = [(r.resource_type, r.resource_name) for r in request.resources]
    counts = Counter(resources)
    for resource, altered in zip(resources, request.resources, strict=True):
        values = [(config.name, config.value) for config in altered.configs]

        def decide(
            resource: ConfigResourceKey = resource, values: Sequence[tuple[str, str | None]] = values
        ) -> Altered | RefusedAlteration:
            return _REPLACE[resource[0]](configs, resource[1], values)

        planned, code, message = _plan_resource(image, counts, resource, decide)
        records += planned
        responses.append(
            AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=resource[0], resource_name=resource[1]
            )
        )
    response = AlterConfigsResponse(throttle_time_ms=0, responses=tuple(responses))
    return Planned(records=() if request.validate_only else tuple(records), response=response)


def plan_incremental_alter_configs(
    image: ClusterImage, configs: DynamicConfigs, request: IncrementalAlterConfigsRequest
) -> Planned[IncrementalAlterConfigsResponse]:
    records: list[Message] = []
    responses = []
    resources = [(r.resource_type, r.resource_name) for r in request.resources]
    counts = Counter(resources)
    for resource, altered in zip(resources, request.resources, strict=True):
        changes = [
            ConfigAlteration(config.name, config.config_operation, config.value) for config in altered.configs
        ]

        def decide(
            resource: ConfigResourceKey = resource, changes: Sequence[ConfigAlteration] = changes
        ) -> Altered | RefusedAlteration:
            return _ALTER[resource[0]](configs, resource[1], changes)

        planned, code, message = _plan_resource(image, counts, resource, decide)
        records += planned
        responses.append(
            IncrementalResourceResponse(
                error_code=code, error_message=message, resource_type=resource[0], resource_name=resource[1]
            )
        )
    response = IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=tuple(responses))
    return Planned(records=() if request.validate_only else tuple(records), response=response)


def _plan_resource(
    image: ClusterImage,
    counts: Mapping[ConfigResourceKey, int],
    resource: ConfigResourceKey,
    decide: Callable[[], Altered | RefusedAlteration],
) -> tuple[list[Message], int, str | None]:
    kind, name = resource
    try:
        if counts[resource] > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The resource is in the request more than once.")
        _check_resource(image, kind, name)
        decided = decide()
        if isinstance(decided, RefusedAlteration):
            raise KafkaError(ErrorCode[decided.error], decided.message)
        for key, value in decided.records:
            if key == OBSERVERS and value is not None:
                check_observers(image, name, value)
            if key == MIN_IN_SYNC_KEY and kind == BROKER_RESOURCE:
                _check_one_minimum(image, name, value)
    except KafkaError as error:
        return [], error.code, error.message
    records: list[Message] = [
        ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
        for key, value in decided.records
    ]
    if any(key == MIN_IN_SYNC_KEY for key, _ in decided.records):
        records += forgotten_eligible_leaders(image, resource)
    return records, ErrorCode.NONE, None


def forgotten_eligible_leaders(image: ClusterImage, resource: ConfigResourceKey) -> list[Message]:
    """Returns the record that clears eligible leader replicas: the replicas hold only records that were committed under
    the old minimum."""
    if not uses_eligible_leaders(image):
        return []
    kind, name = resource
    return [ClearElrRecord(topic_name=name if kind == TOPIC_RESOURCE else "")]


def _check_one_minimum(image: ClusterImage, broker: str, value: str | None) -> None:
    """Checks that the whole cluster keeps one minimum, which eligible leader replicas rely on (KIP-966)."""
    if not uses_eligible_leaders(image):
        return
    if broker:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "A broker has no min.insync.replicas of its own while eligible leader replicas are on.",
        )
    if value is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "The cluster's min.insync.replicas stays while eligible leader replicas are on.",
        )


def _check_resource(image: ClusterImage, kind: int, name: str) -> None:
    if kind == TOPIC_RESOURCE:
        if name not in image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
    elif kind not in _ALTER:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Resources of type {kind} have no configs that can be altered."
        )
    elif kind == BROKER_RESOURCE and name and not name.isdigit():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name!r} is not a broker's id.")

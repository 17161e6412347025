"""The features of the cluster and their levels, and the plan for UpdateFeatures (KIP-584).

The level of kraft.version is not in the image: it is in a control record of the metadata log, and the quorum raises it.
A plan checks an update of it like any other; the caller has the quorum carry it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.config import DynamicConfigs
from strandline.controller.image import BROKER_RESOURCE, ClusterImage
from strandline.wire.api.k57_update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from strandline.wire.records.metadata import (
    BrokerFeature,
    ConfigRecord,
    ControllerFeature,
    FeatureLevelRecord,
)
from strandline.wire.schema import Message

METADATA_VERSION_FEATURE: Final = "metadata.version"
# 4.3-IV0 is the newest metadata version that Apache Kafka 4.3 calls production-ready, and 3.3-IV3 the oldest it
# supports.
METADATA_VERSION: Final = 30
METADATA_VERSION_MIN: Final = 7
# 1: groups of the consumer protocol (KIP-848) may exist.
GROUP_VERSION_FEATURE: Final = "group.version"
GROUP_VERSION: Final = 1
# 2: each transaction has an epoch of its own (KIP-890); 1 and 0 stay for older clients.
TRANSACTION_VERSION_FEATURE: Final = "transaction.version"
TRANSACTION_VERSION: Final = 2
# 1: the voters of the metadata quorum are in its log and can change (KIP-853).
KRAFT_VERSION_FEATURE: Final = "kraft.version"
KRAFT_VERSION: Final = 1
# 1: replicas that left the in-sync set below its minimum may lead (KIP-966).
ELIGIBLE_LEADERS_FEATURE: Final = "eligible.leader.replicas.version"
ELIGIBLE_LEADERS_VERSION: Final = 1
SUPPORTED_FEATURES: Final[Mapping[str, tuple[int, int]]] = {
    METADATA_VERSION_FEATURE: (METADATA_VERSION_MIN, METADATA_VERSION),
    GROUP_VERSION_FEATURE: (0, GROUP_VERSION),
    TRANSACTION_VERSION_FEATURE: (0, TRANSACTION_VERSION),
    KRAFT_VERSION_FEATURE: (0, KRAFT_VERSION),
    ELIGIBLE_LEADERS_FEATURE: (0, ELIGIBLE_LEADERS_VERSION),
}
# 4.0-IV1, as in Kafka.
_METADATA_VERSION_FOR_ELIGIBLE_LEADERS: Final = 23

MIN_IN_SYNC_KEY: Final = "min.insync.replicas"

_SAFE_DOWNGRADE: Final = 2
_UNSAFE_DOWNGRADE: Final = 3


def bootstrap_records() -> tuple[Message, ...]:
    """Returns the levels of a new cluster; the level of kraft.version is beside the voters."""
    return (
        FeatureLevelRecord(name=METADATA_VERSION_FEATURE, feature_level=METADATA_VERSION),
        FeatureLevelRecord(name=GROUP_VERSION_FEATURE, feature_level=GROUP_VERSION),
        FeatureLevelRecord(name=TRANSACTION_VERSION_FEATURE, feature_level=TRANSACTION_VERSION),
        FeatureLevelRecord(name=ELIGIBLE_LEADERS_FEATURE, feature_level=ELIGIBLE_LEADERS_VERSION),
    )


def uses_eligible_leaders(image: ClusterImage) -> bool:
    return image.features.get(ELIGIBLE_LEADERS_FEATURE, 0) >= ELIGIBLE_LEADERS_VERSION


def one_minimum_records(image: ClusterImage, minimum: int) -> list[Message]:
    """Returns the records that leave one min.insync.replicas in the cluster. Which replicas are eligible depends on it,
    so all controllers must use the same value."""
    records: list[Message] = []
    if MIN_IN_SYNC_KEY not in image.configs.get((BROKER_RESOURCE, ""), {}):
        records.append(_minimum("", str(minimum)))
    for (kind, name), configs in sorted(image.configs.items()):
        if kind == BROKER_RESOURCE and name and MIN_IN_SYNC_KEY in configs:
            records.append(_minimum(name, None))
    return records


def first_records(image: ClusterImage, configs: DynamicConfigs) -> tuple[Message, ...]:
    """Returns the records with which a new metadata log begins."""
    return (*one_minimum_records(image, configs.broker_int(MIN_IN_SYNC_KEY)), *bootstrap_records())


def _minimum(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name=broker, name=MIN_IN_SYNC_KEY, value=value
    )


def plan_update_features(
    image: ClusterImage,
    configs: DynamicConfigs,
    request: UpdateFeaturesRequest,
    version: int,
    *,
    kraft_version: int,
) -> Planned[UpdateFeaturesResponse]:
    """Plans all updates of a request, or none if one of them is refused."""
    records: list[Message] = []
    results = []
    failed: KafkaError | None = None
    levels = image.features | {KRAFT_VERSION_FEATURE: kraft_version}
    proposed = levels | {update.feature: update.max_version_level for update in request.feature_updates}
    for update in request.feature_updates:
        code, message = int(ErrorCode.NONE), None
        try:
            _check(image, update, version, levels, proposed)
            if update.feature != KRAFT_VERSION_FEATURE:
                records.append(
                    FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level)
                )
        except KafkaError as error:
            failed = failed or error
            code, message = error.code, error.message
        results.append(UpdatableFeatureResult(feature=update.feature, error_code=code, error_message=message))
    if proposed.get(ELIGIBLE_LEADERS_FEATURE, 0) and not uses_eligible_leaders(image):
        records = [*one_minimum_records(image, configs.broker_int(MIN_IN_SYNC_KEY)), *records]
    if failed is not None or request.validate_only:
        records = []
    response = UpdateFeaturesResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE if failed is None else failed.code,
        error_message=None if failed is None else failed.message,
        results=tuple(results),
    )
    return Planned(records=tuple(records), response=response)


def _check(
    image: ClusterImage,
    update: FeatureUpdateKey,
    version: int,
    levels: Mapping[str, int],
    proposed: Mapping[str, int],
) -> None:
    """Raises INVALID_UPDATE_VERSION with the reason if the update is not possible."""
    level, name = update.max_version_level, update.feature
    if name not in SUPPORTED_FEATURES:
        raise _refused(f"There is no feature {name!r}.")
    low, high = SUPPORTED_FEATURES[name]
    if not low <= level <= high:
        raise _refused(f"Feature {name} has levels {low} to {high}, not {level}.")
    for who, features in _everyone(image):
        low, high = next(
            ((f.min_supported_version, f.max_supported_version) for f in features if f.name == name), (0, 0)
        )
        if not low <= level <= high:
            raise _refused(f"{who} does not support level {level} of {name}. Upgrade it first.")
    is_downgrade = (
        update.upgrade_type in (_SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE)
        if version >= 1
        else update.allow_downgrade
    )
    if level < levels.get(name, 0) and not is_downgrade:
        raise _refused(
            f"Feature {name} is at {levels[name]}; {level} is a downgrade, and the request is for an upgrade."
        )
    if level > levels.get(name, 0) and is_downgrade and version >= 1:
        raise _refused(
            f"Feature {name} is at {levels.get(name, 0)}; {level} is no downgrade, and the request is for one."
        )
    if name == KRAFT_VERSION_FEATURE and level < levels[name]:
        raise _refused("Voters that are in the log stay there: kraft.version cannot be lowered.")
    needed = _METADATA_VERSION_FOR_ELIGIBLE_LEADERS
    if proposed.get(ELIGIBLE_LEADERS_FEATURE, 0) and proposed.get(METADATA_VERSION_FEATURE, 0) < needed:
        raise _refused(f"{ELIGIBLE_LEADERS_FEATURE} 1 needs {METADATA_VERSION_FEATURE} {needed} or more.")


def _everyone(image: ClusterImage) -> Iterator[tuple[str, Sequence[BrokerFeature | ControllerFeature]]]:
    for broker in image.brokers.values():
        yield f"Broker {broker.node_id}", broker.features
    for controller in image.controllers.values():
        yield f"Controller {controller.controller_id}", controller.features


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, why)

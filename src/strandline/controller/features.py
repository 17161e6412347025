"""Plan for UpdateFeatures (KIP-584): which levels of features the whole cluster uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.controller.image import ClusterImage
from strandline.controller.plans import Planned
from strandline.wire.api.k57_update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from strandline.wire.records.metadata import FeatureLevelRecord
from strandline.wire.schema import Message

_UPGRADE: Final = 1
_SAFE_DOWNGRADE: Final = 2
_UNSAFE_DOWNGRADE: Final = 3


def plan_update_features(
    image: ClusterImage,
    request: UpdateFeaturesRequest,
    version: int,
    supported: Mapping[str, tuple[int, int]],
) -> Planned[UpdateFeaturesResponse]:
    """All or nothing: if one update is refused none is made."""
    records: list[Message] = []
    results = []
    failed: KafkaError | None = None
    for update in request.feature_updates:
        code, message = int(ErrorCode.NONE), None
        try:
            _check(image, update, version, supported)
            records.append(FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level))
        except KafkaError as error:
            failed = failed or error
            code, message = error.code, error.message
        results.append(UpdatableFeatureResult(feature=update.feature, error_code=code, error_message=message))
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
    image: ClusterImage, update: FeatureUpdateKey, version: int, supported: Mapping[str, tuple[int, int]]
) -> None:
    level, name = update.max_version_level, update.feature
    if name not in supported:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"There is no feature {name!r}.")
    low, high = supported[name]
    if level and not low <= level <= high:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION, f"Feature {name} has levels {low} to {high}, not {level}."
        )
    for broker in image.brokers.values():
        for feature in broker.features:
            if (
                feature.name == name
                and not feature.min_supported_version <= level <= feature.max_supported_version
            ):
                raise KafkaError(
                    ErrorCode.INVALID_UPDATE_VERSION, f"Broker {broker.node_id} does not support it."
                )
    allows_less = (
        update.upgrade_type in (_SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE)
        if version >= 1
        else update.allow_downgrade
    )
    if level < image.features.get(name, 0) and not allows_less:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Feature {name} is at {image.features[name]}; {level} is a downgrade.",
        )

"""Levels of features: what is supported, what needs what, and what a change brings with it."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.planned import Planned
from strandline.controller.features import (
    ELIGIBLE_LEADERS_FEATURE,
    KRAFT_VERSION_FEATURE,
    METADATA_VERSION_FEATURE,
    bootstrap_records,
    plan_update_features,
)
from strandline.controller.image import BROKER_RESOURCE, ClusterImage, PartitionState
from strandline.controller.partitions import PartitionChange
from strandline.wire.api.k57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from strandline.wire.records.metadata import ConfigRecord, FeatureLevelRecord, RegisterBrokerRecord

UPGRADE, SAFE_DOWNGRADE = 1, 2


def image_with(**levels: int) -> ClusterImage:
    image = ClusterImage()
    for record in bootstrap_records():
        image.apply(record)
    for name, level in levels.items():
        image.apply(FeatureLevelRecord(name=name.replace("_", "."), feature_level=level))
    return image


def plan(
    image: ClusterImage, kind: int = UPGRADE, recorded: int = 0, **levels: int
) -> Planned[UpdateFeaturesResponse]:
    updates = tuple(
        FeatureUpdateKey(feature=name.replace("_", "."), max_version_level=level, upgrade_type=kind)
        for name, level in levels.items()
    )
    request = UpdateFeaturesRequest(timeout_ms=1000, feature_updates=updates, validate_only=False)
    return plan_update_features(image, request, 2, kraft_version=recorded, static_minimum=2)


def test_new_cluster_has_the_levels_of_kafka_4_3() -> None:
    assert image_with().features == {
        METADATA_VERSION_FEATURE: 30,
        "group.version": 1,
        "transaction.version": 2,
        ELIGIBLE_LEADERS_FEATURE: 1,
    }


@pytest.mark.parametrize(
    ("levels", "kind", "recorded"),
    [
        ({"no_such_feature": 1}, UPGRADE, 0),
        ({"transaction_version": 3}, UPGRADE, 0),
        ({"metadata_version": 6}, SAFE_DOWNGRADE, 0),
        ({"transaction_version": 1}, UPGRADE, 0),
        ({"kraft_version": 2}, UPGRADE, 0),
        ({"kraft_version": 0}, SAFE_DOWNGRADE, 1),
        ({"kraft_version": 1}, SAFE_DOWNGRADE, 0),
        ({"metadata_version": 22}, SAFE_DOWNGRADE, 0),  # eligible leader replicas need 23
    ],
)
def test_levels_that_cannot_be_are_refused_and_nothing_changes(
    levels: dict[str, int], kind: int, recorded: int
) -> None:
    planned = plan(image_with(), kind, recorded, **levels)
    assert planned.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert planned.records == ()


def test_level_that_a_broker_does_not_support_is_refused() -> None:
    image = image_with(transaction_version=1)
    image.apply(
        RegisterBrokerRecord(
            broker_id=7, incarnation_id=bytes(16), broker_epoch=1, end_points=(), features=(), rack=None
        )
    )
    assert "Broker 7" in (plan(image, transaction_version=2).response.error_message or "")


def test_level_of_kraft_version_is_no_record_of_the_image() -> None:
    planned = plan(image_with(), kraft_version=1)
    assert planned.response.error_code == ErrorCode.NONE
    assert planned.records == ()


def test_eligible_leaders_bring_one_minimum_for_the_cluster() -> None:
    image = image_with(eligible_leader_replicas_version=0)
    own = ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name="3", name="min.insync.replicas", value="1"
    )
    image.apply(own)
    records = plan(image, eligible_leader_replicas_version=1).records
    assert [(r.resource_name, r.value) for r in records if isinstance(r, ConfigRecord)] == [
        ("", "2"),
        ("3", None),
    ]
    assert records[-1] == FeatureLevelRecord(name=ELIGIBLE_LEADERS_FEATURE, feature_level=1)


def test_without_eligible_leaders_the_last_in_sync_stays_in_sync() -> None:
    partition = PartitionState(replicas=(1, 2), in_sync=(1,), leader=1, leader_epoch=0, partition_epoch=0)
    for uses_eligible in (True, False):
        record = PartitionChange(
            topic_id=bytes(16),
            index=0,
            partition=partition,
            is_alive=lambda broker: broker == 2,
            min_in_sync=1,
            uses_eligible=uses_eligible,
            in_sync=(),
        ).record()
        assert record is not None
        assert record.leader == -1
        assert (record.isr, record.eligible_leader_replicas) == (
            ((), (1,)) if uses_eligible else (None, None)
        )


def test_kraft_version_is_told_apart() -> None:
    assert KRAFT_VERSION_FEATURE not in image_with().features

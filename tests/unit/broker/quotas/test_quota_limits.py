"""Which quota holds for whom, and where responses tell of it."""

from __future__ import annotations

import pytest

from strandline.base.quota_windows import RateWindow
from strandline.broker.api.table import TABLE
from strandline.broker.quotas.client_quotas import throttle_time_position
from strandline.broker.quotas.limits import QuotaLimits
from strandline.controller.image import ClusterImage
from strandline.wire.records.metadata import ClientQuotaRecord, QuotaEntity

KEY = "producer_byte_rate"
ALL = [
    {"user": "alice", "client-id": "app"},
    {"user": "alice", "client-id": None},
    {"user": "alice"},
    {"user": None, "client-id": "app"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "app"},
    {"client-id": None},
]


def apply(image: ClusterImage, entity: dict[str, str | None], rate: float, *, remove: bool = False) -> None:
    named = tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity.items())
    image.apply(ClientQuotaRecord(entity=named, key=KEY, value=rate, remove=remove))


def limits_of(image: ClusterImage) -> QuotaLimits[RateWindow]:
    return QuotaLimits(image, KEY, lambda: RateWindow(1.0, 11))


def test_the_most_specific_quota_holds() -> None:
    image = ClusterImage()
    for number, entity in enumerate(ALL):
        apply(image, entity, 100.0 + number)
    limits = limits_of(image)
    for number, entity in enumerate(ALL):
        limit = limits.of("alice", "app")
        assert limit is not None
        assert limit.rate == 100.0 + number
        apply(image, entity, 0, remove=True)
    assert limits.of("alice", "app") is None


@pytest.mark.parametrize(
    ("entity", "is_shared_by_client_ids", "is_shared_by_users"),
    [
        ({"user": "alice"}, True, False),
        ({"user": None}, True, False),
        ({"client-id": "app"}, False, True),
        ({"client-id": None}, False, True),
        ({"user": None, "client-id": None}, False, False),
    ],
)
def test_a_quota_is_shared_by_those_whom_it_names(
    entity: dict[str, str | None], is_shared_by_client_ids: bool, is_shared_by_users: bool
) -> None:
    image = ClusterImage()
    apply(image, entity, 100.0)
    limits = limits_of(image)

    def window(user: str, client_id: str) -> object:
        limit = limits.of(user, client_id)
        return None if limit is None else limit.window

    first = window("alice", "app")
    assert first is not None
    assert (window("alice", "other") is first) is is_shared_by_client_ids
    assert (window("bob", "app") is first) is is_shared_by_users


def test_a_changed_quota_remembers_what_was_used() -> None:
    image = ClusterImage()
    apply(image, {"user": "alice"}, 100.0)
    limits = limits_of(image)
    before = limits.of("alice", "app")
    apply(image, {"user": "alice"}, 200.0)
    after = limits.of("alice", "app")
    assert before is not None
    assert after is not None
    assert (after.rate, after.window) == (200.0, before.window)


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda row: row.name)
def test_every_response_that_can_tell_of_it_has_a_place_for_it(row: object) -> None:
    # ApiVersions has it after its list; these are muted without being told, as are those without the field.
    without = {17, 18, 27, 36, 52, 53, 54, 55, 58}
    key, version = row.key, row.version_max  # type: ignore[attr-defined]
    assert (throttle_time_position(key, version) is None) == (key in without)

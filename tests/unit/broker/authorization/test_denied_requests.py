"""Every API in every version, from somebody who may do nothing: denied, by a response that its version can carry."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.broker.api.table import TABLE
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.authorization.decision_counts import DecisionCounts
from strandline.broker.authorization.node_authorizer import rule_for
from strandline.broker.server.api_row import ApiRow
from strandline.controller.image import ClusterImage
from strandline.security.authorizer import AccessRights
from strandline.security.principal import user
from strandline.telemetry.events import Events
from strandline.wire.codec import encode
from strandline.wire.error_codes import error_codes
from strandline.wire.schema import Request
from tests.properties.messages import values
from tests.unit.broker.world import HandClock

CLUSTER_AUTHORIZATION_FAILED = 31


def request_class(row: ApiRow) -> type[Request]:
    found: type[Request] = getattr(import_module(f"strandline.wire.api.{row.module}"), f"{row.name}Request")
    return found


def access_without_rights(row: ApiRow, version: int, *, is_controller_listener: bool) -> RequestAccess:
    return RequestAccess(
        AccessRights([]),
        ClusterImage(),
        user("mallory"),
        "127.0.0.1",
        row.key,
        version,
        Events(lambda _: None, lambda: 0),
        DecisionCounts(HandClock()),
        is_controller_listener=is_controller_listener,
    )


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda row: row.name)
@settings(max_examples=4)
@given(data=st.data())
def test_denials_can_be_encoded_in_every_version(row: ApiRow, data: st.DataObject) -> None:
    rule = rule_for(row.authorization)
    version = data.draw(st.integers(row.version_min, row.version_max))
    request = data.draw(values(request_class(row), version))
    for is_controller_listener in (False, True):
        access = access_without_rights(row, version, is_controller_listener=is_controller_listener)
        reduction = rule(access, request)
        if reduction is not None and reduction.request is None:
            response = reduction.merge(None)
            encode(response, version)
            if row.authorization.operation is not None:
                assert set(error_codes(response)) <= {CLUSTER_AUTHORIZATION_FAILED}
        else:
            assert row.authorization.operation is None, "somebody without rights is let through"

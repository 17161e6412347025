"""The error codes of responses are found at every depth."""

from __future__ import annotations

from strandline.wire.api.k12_heartbeat import HeartbeatResponse
from strandline.wire.api.k20_delete_topics import DeletableTopicResult, DeleteTopicsResponse
from strandline.wire.api.k56_alter_partition import AlterPartitionResponse
from strandline.wire.error_codes import error_codes


def test_a_code_of_the_whole_response() -> None:
    assert error_codes(HeartbeatResponse(error_code=25)) == [25]
    assert error_codes(HeartbeatResponse(error_code=0)) == []


def test_codes_of_items() -> None:
    response = DeleteTopicsResponse(
        responses=(
            DeletableTopicResult(name="a", error_code=3),
            DeletableTopicResult(name="b", error_code=0),
            DeletableTopicResult(name="c", error_code=3),
        ),
        throttle_time_ms=0,
    )
    assert error_codes(response) == [3, 3]


def test_items_that_are_absent_have_none() -> None:
    assert error_codes(AlterPartitionResponse(throttle_time_ms=0, error_code=0, topics=())) == []

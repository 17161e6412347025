"""The metadata that the client takes over, and the metadata that it does not."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.errors import UnknownTopicError, WrongClusterError
from strandline.client.net.connections import Node
from strandline.client.net.metadata import Metadata
from strandline.wire.api.k03_metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ID = bytes(range(16))
WHERE = TopicPartition("t", 0)


def response(
    leader: int, epoch: int, *, topic_id: bytes = ID, error: int = 0, cluster: str = "c", partitions: int = 1
) -> MetadataResponse:
    return MetadataResponse(
        brokers=tuple(MetadataResponseBroker(node_id=n, host=f"h{n}", port=9) for n in (1, 2)),
        cluster_id=cluster,
        controller_id=1,
        topics=(
            MetadataResponseTopic(
                error_code=error,
                name="t",
                topic_id=topic_id,
                partitions=tuple(
                    MetadataResponsePartition(
                        error_code=0,
                        partition_index=number,
                        leader_id=leader,
                        leader_epoch=epoch,
                        replica_nodes=(1, 2),
                        isr_nodes=(1, 2),
                    )
                    for number in range(partitions)
                ),
            ),
        ),
    )


def test_an_older_leader_epoch_changes_nothing_unless_the_topic_is_a_new_one() -> None:
    metadata = Metadata()
    metadata.apply(response(1, 5))
    metadata.apply(response(2, 4))
    assert metadata.leader(WHERE) == Node(1, "h1", 9)
    metadata.apply(response(2, 0, topic_id=bytes(15) + b"\x01"))
    assert metadata.leader(WHERE) == Node(2, "h2", 9)
    assert metadata.topic_name(ID) is None
    assert metadata.topic_name(bytes(15) + b"\x01") == "t"


def test_a_hint_of_a_newer_leader_is_taken_even_if_it_is_a_new_broker() -> None:
    metadata = Metadata()
    metadata.apply(response(1, 5))
    assert not metadata.apply_leader_hint(WHERE, 2, 5)
    assert not metadata.apply_leader_hint(WHERE, 3, 6)
    assert metadata.apply_leader_hint(WHERE, 3, 6, Node(3, "h3", 9))
    assert metadata.leader(WHERE) == Node(3, "h3", 9)


def test_an_unknown_topic_is_forgotten_and_its_error_kept() -> None:
    metadata = Metadata()
    metadata.apply(response(1, 5))
    metadata.apply(response(1, 5, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=0))
    assert metadata.topic("t") is None
    assert isinstance(metadata.topic_errors["t"], UnknownTopicError)
    metadata.apply(response(1, 6))
    assert metadata.topic_errors == {}


def test_another_cluster_raises_and_changes_nothing() -> None:
    metadata = Metadata()
    metadata.apply(response(1, 5))
    with pytest.raises(WrongClusterError):
        metadata.apply(response(2, 9, cluster="other"))
    assert metadata.leader(WHERE) == Node(1, "h1", 9)
    with pytest.raises(WrongClusterError):
        Metadata("expected").apply(response(1, 1))


def test_partitions_without_a_leader_are_not_available() -> None:
    metadata = Metadata()
    metadata.apply(response(-1, 5, partitions=2))
    topic = metadata.topic("t")
    assert topic is not None
    assert topic.available == ()
    assert metadata.leader(WHERE) is None
    assert metadata.partition(TopicPartition("t", 2)) is None

"""Plans for topics: what is made, and every refusal."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode
from strandline.controller import brokers, topics
from strandline.controller.image import TOPIC_RESOURCE
from strandline.controller.producer_ids import plan_allocate_producer_ids
from strandline.controller.topics import PARTITIONS_PER_REQUEST_MAX
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.api.k37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from strandline.wire.records.metadata import ConfigRecord, PartitionRecord, TopicRecord
from tests.unit.controller.plans import DIRECTORY, Cluster, contents, registration, topic


def test_a_topic_is_its_record_its_configs_and_its_partitions() -> None:
    cluster = Cluster(None, None, None)
    before = len(cluster.log)
    (result,) = cluster.create(topic("t", 2, 3, retention_ms="5", cleanup_policy="compact")).topics
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 2, 3)
    kinds = [type(record) for record in cluster.log[before:]]
    assert kinds == [TopicRecord, ConfigRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    partitions = cluster.image.topics["t"].partitions
    for partition in partitions.values():
        assert sorted(partition.replicas) == [1, 2, 3]
        assert (partition.leader, partition.in_sync) == (partition.replicas[0], partition.replicas)
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
        assert partition.directories == (DIRECTORY,) * 3
    assert cluster.configs.topic("t").retention_ms == 5
    assert {config.name for config in result.configs} >= {"retention.ms", "segment.bytes"}


def test_defaults_stand_for_what_is_not_given() -> None:
    cluster = Cluster(None, None, num_partitions="4", default_replication_factor="2")
    (result,) = cluster.create(topic()).topics
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_planning_changes_nothing_and_validating_records_nothing() -> None:
    cluster = Cluster()
    before = contents(cluster.state)
    response = cluster.create(topic("t", 1, 1), topic("bad name", 1, 1), validate_only=True)
    assert [result.error_code for result in response.topics] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert contents(cluster.state) == before


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "a\x00", "x" * 250, "a\n"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    assert Cluster().error_of(topic(name, 1, 1)) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_metadata_log_s_name_is_refused() -> None:
    assert Cluster().error_of(topic("__cluster_metadata", 1, 1)) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("name", ["a", "x" * 249, "a.b_c-D9", "...", "-"])
def test_a_name_of_249_letters_digits_dots_dashes_and_underscores_is_taken(name: str) -> None:
    assert Cluster().error_of(topic(name, 1, 1)) == ErrorCode.NONE


def test_a_name_that_is_there_or_whose_metrics_would_be_is_refused() -> None:
    cluster = Cluster()
    cluster.create(topic("a.b", 1, 1))
    assert cluster.error_of(topic("a.b", 1, 1)) == ErrorCode.TOPIC_ALREADY_EXISTS
    assert cluster.error_of(topic("a_b", 1, 1)) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert cluster.error_of(topic("a-b", 1, 1)) == ErrorCode.NONE


REFUSED = {
    "no partitions": (topic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
    "minus two partitions": (topic("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
    "more partitions than a request may make": (
        topic("t", PARTITIONS_PER_REQUEST_MAX + 1, 1),
        ErrorCode.POLICY_VIOLATION,
    ),
    "no replicas": (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
    "minus two replicas": (topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
    "more replicas than registered brokers": (topic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
    "an unknown config": (topic("t", 1, 1, no_such_key="1"), ErrorCode.INVALID_CONFIG),
    "a bad value": (topic("t", 1, 1, retention_ms="soon"), ErrorCode.INVALID_CONFIG),
    "a config of null": (topic("t", 1, 1, retention_ms=None), ErrorCode.INVALID_CONFIG),
    "assignments and a number": (topic("t", 1, -1, {0: (1,)}), ErrorCode.INVALID_REQUEST),
    "assignments and a factor": (topic("t", -1, 1, {0: (1,)}), ErrorCode.INVALID_REQUEST),
    "a gap in the partitions": (topic("t", -1, -1, {0: (1,), 2: (1,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "partitions from 1": (topic("t", -1, -1, {1: (1,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "an empty assignment": (topic("t", -1, -1, {0: ()}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "a broker twice": (topic("t", -1, -1, {0: (1, 1)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "an unknown broker": (topic("t", -1, -1, {0: (9,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "factors that differ": (topic("t", -1, -1, {0: (1, 2), 1: (1,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "only fenced brokers": (topic("t", -1, -1, {0: (3,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
}


def test_a_request_for_too_many_partitions_is_refused_as_a_whole() -> None:
    cluster = Cluster(num_partitions="2")
    half = PARTITIONS_PER_REQUEST_MAX // 2
    given = dict.fromkeys(range(half - 1), (1,))
    asked = (topic("small", 1, 1), topic("default"), topic("given", -1, -1, given), topic("large", half, 1))
    response = cluster.create(*asked)
    assert {result.error_code for result in response.topics} == {ErrorCode.POLICY_VIOLATION}
    assert all("Excessively large number of partitions" in result.error_message for result in response.topics)
    assert not cluster.image.topics
    response = cluster.create(*asked[1:3], topic("large", half - 1, 1), validate_only=True)
    assert {result.error_code for result in response.topics} == {ErrorCode.NONE}


def test_topics_of_one_request_are_described_each_by_its_own_configs() -> None:
    cluster = Cluster()
    response = cluster.create(topic("a", 1, 1), topic("b", 1, 1, retention_ms="7"), topic("c", 1, 1))
    found = [{config.name: config.value for config in result.configs} for result in response.topics]
    assert found[0] == found[2] == found[1] | {"retention.ms": found[0]["retention.ms"]}
    assert found[1]["retention.ms"] == "7" != found[0]["retention.ms"]


def test_a_request_for_too_many_configs_is_refused_as_a_whole() -> None:
    cluster = Cluster()
    asked = [topic(f"t{index}", 1, 1, retention_ms="1", segment_ms="1") for index in range(5001)]
    response = cluster.create(*asked)
    assert {result.error_code for result in response.topics} == {ErrorCode.POLICY_VIOLATION}


@pytest.mark.parametrize("what", REFUSED)
def test_a_topic_that_cannot_be_is_refused_and_leaves_no_record(what: str) -> None:
    cluster = Cluster(None, None)
    cluster.commit(brokers.plan_register(cluster.image, registration(3), 9, cluster.rules))
    before = len(cluster.log)
    asked, code = REFUSED[what]
    assert cluster.error_of(asked) == code
    assert len(cluster.log) == before


def test_topics_of_one_request_succeed_or_fail_by_themselves() -> None:
    cluster = Cluster()
    response = cluster.create(
        topic("a", 1, 1), topic("b", 1, 9), topic("c", 1, 1), topic("d", 1, 1), topic("d", 2, 1)
    )
    codes = {result.name: ErrorCode(result.error_code) for result in response.topics}
    assert codes == {
        "a": ErrorCode.NONE,
        "b": ErrorCode.INVALID_REPLICATION_FACTOR,
        "c": ErrorCode.NONE,
        "d": ErrorCode.INVALID_REQUEST,
    }
    assert set(cluster.image.topics) == {"a", "c"}


def placed(cluster: Cluster) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    partitions = cluster.image.topics["t"].partitions
    return [(p.replicas, p.in_sync, p.leader) for p in partitions.values()]


def test_a_broker_that_is_down_gets_a_replica_last_and_does_not_lead() -> None:
    cluster = Cluster(None, None, None)
    cluster.commit(brokers.plan_fence(cluster.image, 3, cluster.rules))
    cluster.create(topic("t", 6, 3))
    for replicas, in_sync, leader in placed(cluster):
        assert replicas[2] == 3
        assert set(replicas[:2]) == set(in_sync) == {1, 2}
        assert leader == replicas[0]


def test_a_broker_that_is_down_gets_no_replica_while_its_rack_has_another() -> None:
    cluster = Cluster("a", "a", "b", "b")
    cluster.commit(brokers.plan_fence(cluster.image, 4, cluster.rules))
    cluster.create(topic("t", 8, 2))
    assert all(4 not in replicas for replicas, _, _ in placed(cluster))
    assert all(len({n > 2 for n in replicas}) == 2 for replicas, _, _ in placed(cluster)), "a rack each"


def test_where_all_brokers_are_down_no_topic_is_created() -> None:
    cluster = Cluster(None, None)
    for node_id in (1, 2):
        cluster.commit(brokers.plan_fence(cluster.image, node_id, cluster.rules))
    assert cluster.error_of(topic("t", 1, 1)) == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_broker_that_shuts_down_does_not_begin_in_sync() -> None:
    cluster = Cluster(None, None, None)
    cluster.commit(brokers.plan_controlled_shutdown(cluster.image, 3, cluster.rules))
    cluster.create(topic("t", 6, 3))
    assert all(3 not in in_sync and leader != 3 for _, in_sync, leader in placed(cluster))


def test_a_fenced_replica_is_not_in_sync_and_does_not_lead() -> None:
    cluster = Cluster(None, None)
    cluster.commit(brokers.plan_register(cluster.image, registration(3), 9, cluster.rules))
    cluster.create(topic("t", -1, -1, {0: (3, 2, 1)}))
    partition = cluster.image.topics["t"].partitions[0]
    assert (partition.replicas, partition.in_sync, partition.leader) == ((3, 2, 1), (2, 1), 2)


def delete(
    cluster: Cluster, *names: str, ids: tuple[bytes, ...] = (), version: int = 6, **both: bytes
) -> list[ErrorCode]:
    states = [DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids]
    states += [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in both.items()]
    request = DeleteTopicsRequest(topic_names=names, topics=tuple(states), timeout_ms=1)
    response = cluster.commit(topics.plan_delete_topics(cluster.image, cluster.configs, request, version))
    return [ErrorCode(result.error_code) for result in response.responses]


def test_topics_are_deleted_by_name_and_by_id_with_their_configs() -> None:
    cluster = Cluster()
    cluster.create(topic("a", 1, 1, retention_ms="5"), topic("b", 1, 1))
    topic_id = cluster.image.topics["b"].topic_id
    assert delete(cluster, "a", ids=(topic_id,)) == [ErrorCode.NONE] * 2
    image = cluster.image
    of_topics = {key: configs for key, configs in image.configs.items() if key[0] == TOPIC_RESOURCE}
    assert (image.topics, image.topics_by_id, of_topics) == ({}, {}, {})
    cluster.create(topic("a", 1, 1))
    assert cluster.configs.topic("a").retention_ms == 604_800_000


def test_a_topic_that_cannot_be_deleted_is_refused() -> None:
    cluster = Cluster()
    cluster.create(topic("a", 1, 1))
    a_id = cluster.image.topics["a"].topic_id
    assert delete(cluster, "none") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert delete(cluster, ids=(b"\x07" * 16,)) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert delete(cluster, ids=(bytes(16),)) == [ErrorCode.INVALID_REQUEST]
    assert delete(cluster, a=a_id) == [ErrorCode.INVALID_REQUEST]


def test_a_topic_that_is_named_twice_is_not_deleted_and_is_in_the_response_once() -> None:
    cluster = Cluster()
    cluster.create(topic("a", 1, 1), topic("b", 1, 1))
    a_id = cluster.image.topics["a"].topic_id
    assert delete(cluster, "a", "a") == [ErrorCode.INVALID_REQUEST]
    assert delete(cluster, ids=(a_id, a_id)) == [ErrorCode.INVALID_REQUEST]
    assert delete(cluster, "a", ids=(a_id,)) == [ErrorCode.INVALID_REQUEST]
    assert delete(cluster, "a", "b", "a") == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert list(cluster.image.topics) == ["a"]
    assert delete(cluster, "a", "a", ids=(a_id,)) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE], (
        "as in Kafka"
    )


def test_nothing_is_deleted_where_deletion_is_disabled() -> None:
    cluster = Cluster(delete_topic_enable="false")
    cluster.create(topic("a", 1, 1))
    assert delete(cluster, "a", version=3) == [ErrorCode.TOPIC_DELETION_DISABLED]
    assert delete(cluster, "a", version=2) == [ErrorCode.INVALID_REQUEST]
    assert "a" in cluster.image.topics


def grow(cluster: Cluster, *asked: CreatePartitionsTopic, validate_only: bool = False) -> list[ErrorCode]:
    request = CreatePartitionsRequest(topics=asked, timeout_ms=1, validate_only=validate_only)
    response = cluster.commit(topics.plan_create_partitions(cluster.image, request, cluster.state.random))
    return [ErrorCode(result.error_code) for result in response.results]


def more(count: int, *assignments: tuple[int, ...], name: str = "t") -> CreatePartitionsTopic:
    given = tuple(CreatePartitionsAssignment(broker_ids=nodes) for nodes in assignments)
    return CreatePartitionsTopic(name=name, count=count, assignments=given or None)


def test_a_topic_grows_behind_its_last_partition() -> None:
    cluster = Cluster(None, None)
    cluster.create(topic("t", 1, 2))
    assert grow(cluster, more(2), validate_only=True) == [ErrorCode.NONE]
    assert grow(cluster, more(3)) == [ErrorCode.NONE]
    assert grow(cluster, more(4, (2, 1))) == [ErrorCode.NONE]
    partitions = cluster.image.topics["t"].partitions
    assert sorted(partitions) == [0, 1, 2, 3]
    assert partitions[3].replicas == (2, 1)
    assert all(len(partition.replicas) == 2 for partition in partitions.values())


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (more(2), ErrorCode.INVALID_PARTITIONS),
        (more(1), ErrorCode.INVALID_PARTITIONS),
        (more(-1), ErrorCode.INVALID_PARTITIONS),
        (more(3 + PARTITIONS_PER_REQUEST_MAX), ErrorCode.POLICY_VIOLATION),
        (more(3, name="none"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (more(4, (1, 2)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more(3, (1,)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more(3, (1, 9)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more(3, (2, 2)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_growth_that_cannot_be_is_refused(asked: CreatePartitionsTopic, code: ErrorCode) -> None:
    cluster = Cluster(None, None)
    cluster.create(topic("t", 2, 2))
    assert grow(cluster, asked) == [code]
    assert len(cluster.image.topics["t"].partitions) == 2


def test_topics_that_together_grow_by_too_much_are_refused_as_a_whole() -> None:
    cluster = Cluster()
    cluster.create(topic("a", 1, 1), topic("b", 1, 1))
    half = PARTITIONS_PER_REQUEST_MAX // 2
    assert (
        grow(cluster, more(1 + half, name="a"), more(2 + half, name="b")) == [ErrorCode.POLICY_VIOLATION] * 2
    )
    assert grow(cluster, more(1 + half, name="a"), more(2**31 - 1, name="none"), validate_only=True) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_topic_named_twice_does_not_grow() -> None:
    cluster = Cluster()
    cluster.create(topic("t", 1, 1))
    assert grow(cluster, more(2), more(3)) == [ErrorCode.INVALID_REQUEST] * 2


def test_ids_of_a_block_are_never_in_another() -> None:
    cluster = Cluster()
    blocks = [cluster.commit(plan_allocate_producer_ids(cluster.image, 1, 0)) for _ in range(3)]
    ranges = [range(block.first, block.first + block.size) for block in blocks]
    assert len({number for each in ranges for number in each}) == sum(len(each) for each in ranges)

"""Requests that look at and change the cluster, for `test_oracle_answers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from strandline.wire.api import k03_metadata as metadata
from strandline.wire.api import k18_api_versions as api_versions
from strandline.wire.api import k19_create_topics as create_topics
from strandline.wire.api import k20_delete_topics as delete_topics
from strandline.wire.api import k21_delete_records as delete_records
from strandline.wire.api import k22_init_producer_id as init_producer_id
from strandline.wire.api import k32_describe_configs as describe_configs
from strandline.wire.api import k33_alter_configs as alter_configs
from strandline.wire.api import k35_describe_log_dirs as describe_log_dirs
from strandline.wire.api import k37_create_partitions as create_partitions
from strandline.wire.api import k44_incremental_alter_configs as incremental
from strandline.wire.api import k60_describe_cluster as describe_cluster
from strandline.wire.api import k61_describe_producers as describe_producers
from strandline.wire.api import k74_list_config_resources as list_config_resources
from strandline.wire.api import k75_describe_topic_partitions as describe_topic_partitions
from strandline.wire.schema import ZERO_UUID, Request
from tests.compat.oracle_data_script import fetching
from tests.compat.oracle_steps import Run, Step, each_version, topic_id

TOPIC = 2
BROKER = 4
CLIENT_METRICS = 16
GROUP = 32


def api_version_steps() -> Iterator[Step]:
    software = api_versions.ApiVersionsRequest(
        client_software_name="strandline-test", client_software_version="1.0"
    )
    yield from each_version(api_versions.ApiVersionsRequest, "ApiVersions", lambda run: software)
    bad = api_versions.ApiVersionsRequest(client_software_name="-bad-", client_software_version="")
    yield Step("ApiVersions with a bad software name", 4, lambda run: bad)


def new_topic(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    configs: tuple[tuple[str, str | None], ...] = (),
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = (),
) -> create_topics.CreatableTopic:
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=tuple(
            create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
            for index, ids in assignments
        ),
        configs=tuple(create_topics.CreatableTopicConfig(name=key, value=value) for key, value in configs),
    )


def creating(*topics: create_topics.CreatableTopic, validate: bool = False) -> Callable[[Run], Request]:
    request = create_topics.CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=validate)
    return lambda run: request


def topic_steps() -> Iterator[Step]:
    for version in range(2, 8):
        # Version 4 brought -1 for "the broker's default".
        counts = (1, 1) if version < 4 else (-1, -1)
        yield Step(f"CreateTopics v{version}", version, creating(new_topic(f"made-{version}", *counts)))
    cases = {
        "main topic": new_topic("main", 2, 1, (("segment.bytes", "2097152"), ("max.message.bytes", "2000"))),
        "append time topic": new_topic("stamped", 1, 1, (("message.timestamp.type", "LogAppendTime"),)),
        "existing topic": new_topic("main", 1, 1),
        "empty name": new_topic("", 1, 1),
        "name of a dot": new_topic(".", 1, 1),
        "name with a slash": new_topic("a/b", 1, 1),
        "name of 250 characters": new_topic("x" * 250, 1, 1),
        "name that collides": new_topic("made.2x", 1, 1),
        "name of the metadata log": new_topic("__cluster_metadata", 1, 1),
        "no partitions": new_topic("none", 0, 1),
        "negative partitions": new_topic("negative", -2, 1),
        "no replicas": new_topic("none", 1, 0),
        "too many replicas": new_topic("many", 1, 3),
        "unknown config": new_topic("odd", 1, 1, (("no.such.key", "1"),)),
        "bad config value": new_topic("odd", 1, 1, (("retention.ms", "soon"),)),
        "config out of range": new_topic("odd", 1, 1, (("segment.bytes", "3"),)),
        "null config": new_topic("odd", 1, 1, (("retention.ms", None),)),
        "manual assignment": new_topic("manual", assignments=((0, (1,)), (1, (1,)))),
        "assignment with counts": new_topic("manual2", 1, 1, assignments=((0, (1,)),)),
        "assignment with a gap": new_topic("manual3", assignments=((0, (1,)), (2, (1,)))),
        "assignment to an unknown broker": new_topic("manual4", assignments=((0, (99,)),)),
        "assignment without replicas": new_topic("manual5", assignments=((0, ()),)),
    }
    for name, topic in cases.items():
        yield Step(f"CreateTopics: {name}", 7, creating(topic))
    yield Step(
        "CreateTopics: the same twice", 7, creating(new_topic("twice", 1, 1), new_topic("twice", 1, 1))
    )
    yield Step("CreateTopics: only validated", 7, creating(new_topic("validated", 3, 1), validate=True))
    yield Step("CreateTopics: a_b", 7, creating(new_topic("a_b", 1, 1)))
    yield Step("CreateTopics: a.b collides", 7, creating(new_topic("a.b", 1, 1)))


def describing(kind: int, name: str, keys: tuple[str, ...] | None = None) -> Callable[[Run], Request]:
    return lambda run: describe_configs.DescribeConfigsRequest(
        resources=(
            describe_configs.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=keys
            ),
        ),
        include_synonyms=True,
    )


def altering(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Callable[[Run], Request]:
    return lambda run: incremental.IncrementalAlterConfigsRequest(
        resources=(
            incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    incremental.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ),
            ),
        ),
        validate_only=False,
    )


def config_steps() -> Iterator[Step]:
    for version in (1, 3, 4):
        yield Step(f"DescribeConfigs v{version} of a topic", version, describing(TOPIC, "main"))
    yield Step("DescribeConfigs of an unknown topic", 4, describing(TOPIC, "no-such-topic"))
    yield Step(
        "DescribeConfigs of some keys",
        4,
        describing(TOPIC, "main", ("retention.ms", "segment.bytes", "no.such")),
    )
    yield Step("DescribeConfigs of another broker", 4, describing(BROKER, "42"))
    yield Step("DescribeConfigs of an odd type", 4, describing(77, "x"))
    yield Step(
        "DescribeConfigs of broker keys",
        4,
        describing(
            BROKER, "1", ("num.partitions", "log.retention.ms", "message.max.bytes", "compression.type")
        ),
    )
    for version in (0, 1):
        yield Step(
            f"IncrementalAlterConfigs v{version}",
            version,
            altering(TOPIC, "main", ("retention.ms", 0, "12345")),
        )
    yield Step(
        "IncrementalAlterConfigs appends", 1, altering(TOPIC, "main", ("cleanup.policy", 2, "compact"))
    )
    yield Step(
        "IncrementalAlterConfigs subtracts", 1, altering(TOPIC, "main", ("cleanup.policy", 3, "compact"))
    )
    yield Step(
        "IncrementalAlterConfigs appends to a number", 1, altering(TOPIC, "main", ("retention.ms", 2, "5"))
    )
    yield Step("IncrementalAlterConfigs of an unknown key", 1, altering(TOPIC, "main", ("no.such", 0, "5")))
    yield Step(
        "IncrementalAlterConfigs with a bad value", 1, altering(TOPIC, "main", ("retention.ms", 0, "x"))
    )
    yield Step(
        "IncrementalAlterConfigs of an unknown topic",
        1,
        altering(TOPIC, "no-such-topic", ("retention.ms", 0, "5")),
    )
    yield Step(
        "IncrementalAlterConfigs of the brokers", 1, altering(BROKER, "", ("log.retention.ms", 0, "7777777"))
    )
    yield Step("IncrementalAlterConfigs of a fixed key", 1, altering(BROKER, "1", ("node.id", 0, "5")))


def group_config_steps() -> Iterator[Step]:
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    yield Step("DescribeConfigs of a group", 4, describing(GROUP, "g"))
    yield Step("DescribeConfigs of no group", 4, describing(GROUP, ""))
    yield Step(
        "IncrementalAlterConfigs of a group",
        1,
        altering(GROUP, "g", (session, 0, "50000"), (heartbeat, 0, "6000")),
    )
    yield Step("IncrementalAlterConfigs of no group", 1, altering(GROUP, "", (session, 0, "50000")))
    cases: dict[str, tuple[str, int, str | None]] = {
        "an unknown key": ("no.such", 0, "5"),
        "no number": (session, 0, "x"),
        "zero": (session, 0, "0"),
        "too short": (session, 0, "1"),
        "too long": (session, 0, "100000"),
        "too often": (heartbeat, 0, "1"),
        "too seldom": (heartbeat, 0, "60000"),
        "null": (session, 0, None),
        "an append": (session, 2, "1"),
        "too many standbys": ("streams.num.standby.replicas", 0, "50"),
        "an odd reset": ("share.auto.offset.reset", 0, "x"),
        "a reset by duration": ("share.auto.offset.reset", 0, "by_duration:PT1H"),
        "a removal of nothing": ("no.such", 1, None),
    }
    for name, change in cases.items():
        yield Step(f"IncrementalAlterConfigs of a group: {name}", 1, altering(GROUP, "g", change))


def client_metrics_steps() -> Iterator[Step]:
    """Subscriptions to metrics of clients (KIP-714)."""
    yield Step("DescribeConfigs of client metrics", 4, describing(CLIENT_METRICS, "m"))
    cases: dict[str, tuple[str, int, str | None]] = {
        "metrics": ("metrics", 0, "org.apache.kafka.producer.,org.apache.kafka.consumer."),
        "an append": ("metrics", 2, "org.apache.kafka.admin."),
        "a subtraction": ("metrics", 3, "org.apache.kafka.consumer."),
        "a match": ("match", 0, "client_id=a.*, client_software_name=apache-kafka-java"),
        "an append to the match": ("match", 2, "client_source_port=1"),
        "an interval": ("interval.ms", 0, "100"),
        "an unknown key": ("no.such", 0, "5"),
        "no number": ("interval.ms", 0, "x"),
        "too often": ("interval.ms", 0, "99"),
        "too seldom": ("interval.ms", 0, "3600001"),
        "null": ("metrics", 0, None),
        "an append to a number": ("interval.ms", 2, "1"),
        "an unknown fact": ("match", 0, "client_age=3"),
        "a pattern without a fact": ("match", 0, "abc"),
        "a fact without a pattern": ("match", 0, "client_id="),
        "two equal signs": ("match", 0, "client_id=a=b"),
        "a broken pattern": ("match", 0, "client_id=(a"),
        "no match": ("match", 0, ""),
        "a removal of nothing": ("no.such", 1, None),
    }
    for name, change in cases.items():
        step = f"IncrementalAlterConfigs of client metrics: {name}"
        yield Step(step, 1, altering(CLIENT_METRICS, "m", change))
    yield Step(
        "IncrementalAlterConfigs of no client metrics", 1, altering(CLIENT_METRICS, "", cases["metrics"])
    )


def description_steps() -> Iterator[Step]:
    for version in range(14):
        names = tuple(metadata.MetadataRequestTopic(name=name) for name in ("main", "no-such-topic", "a/b"))
        request = metadata.MetadataRequest(topics=names, allow_auto_topic_creation=version < 4)
        if version >= 4:
            yield Step(f"Metadata v{version}", version, lambda run, request=request: request)  # type: ignore[misc]
        known = metadata.MetadataRequest(topics=names[:1])
        yield Step(f"Metadata v{version} of a known topic", version, lambda run, known=known: known)  # type: ignore[misc]
    for created, name in ((True, "__cluster_metadata"), (False, "__share_group_state")):
        internal = metadata.MetadataRequest(
            topics=(metadata.MetadataRequestTopic(name=name),), allow_auto_topic_creation=created
        )
        yield Step(f"Metadata of {name}", 12, lambda run, internal=internal: internal)  # type: ignore[misc]
    for version in (8, 10):
        asked = metadata.MetadataRequest(
            topics=(), include_cluster_authorized_operations=True, include_topic_authorized_operations=True
        )
        yield Step(f"Metadata v{version} with operations", version, lambda run, asked=asked: asked)  # type: ignore[misc]
    yield Step(
        "Metadata v12 by id",
        12,
        lambda run: metadata.MetadataRequest(
            topics=(
                metadata.MetadataRequestTopic(name=None, topic_id=topic_id(run, "main")),
                metadata.MetadataRequestTopic(name=None, topic_id=b"\x09" * 16),
            ),
            include_topic_authorized_operations=True,
        ),
    )
    for version in range(3):
        yield Step(
            f"DescribeCluster v{version}",
            version,
            lambda run: describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True),
        )
    yield Step(
        "DescribeCluster of controllers",
        1,
        lambda run: describe_cluster.DescribeClusterRequest(
            include_cluster_authorized_operations=False, endpoint_type=2
        ),
    )
    topics = tuple(
        describe_topic_partitions.TopicRequest(name=name) for name in ("main", "no-such-topic", "manual")
    )
    for limit in (2000, 3):
        yield Step(
            f"DescribeTopicPartitions up to {limit}",
            0,
            lambda run, limit=limit: describe_topic_partitions.DescribeTopicPartitionsRequest(  # type: ignore[misc]
                topics=topics, response_partition_limit=limit
            ),
        )
    producers = describe_producers.DescribeProducersRequest(
        topics=(
            describe_producers.TopicRequest(name="main", partition_indexes=(1, 9)),
            describe_producers.TopicRequest(name="no-such-topic", partition_indexes=(0,)),
        )
    )
    yield Step("DescribeProducers", 0, lambda run: producers)
    for version in range(2):
        yield Step(
            f"ListConfigResources v{version}",
            version,
            lambda run, version=version: list_config_resources.ListConfigResourcesRequest(  # type: ignore[misc]
                resource_types=(2, 4) if version else ()
            ),
        )
    for version in range(1, 6):
        yield Step(
            f"DescribeLogDirs v{version}",
            version,
            lambda run: describe_log_dirs.DescribeLogDirsRequest(
                topics=(describe_log_dirs.DescribableLogDirTopic(topic="main", partitions=(0, 1, 5)),)
            ),
        )


def changed_config_steps() -> Iterator[Step]:
    """Some time after the changes: Kafka's broker learns of them a little later than its controller."""
    yield Step(
        "DescribeConfigs after the changes", 4, describing(TOPIC, "main", ("retention.ms", "cleanup.policy"))
    )
    yield Step("DescribeConfigs of an inherited key", 4, describing(TOPIC, "manual", ("retention.ms",)))
    yield Step("DescribeConfigs of a changed group", 4, describing(GROUP, "g"))
    yield Step(
        "ListConfigResources of groups",
        1,
        lambda run: list_config_resources.ListConfigResourcesRequest(resource_types=(GROUP,)),
    )
    yield Step("DescribeConfigs of changed client metrics", 4, describing(CLIENT_METRICS, "m"))
    yield Step(
        "DescribeConfigs of some client metrics", 4, describing(CLIENT_METRICS, "m", ("metrics", "no"))
    )
    for version in range(2):
        yield Step(
            f"ListConfigResources v{version} of client metrics",
            version,
            lambda run, version=version: list_config_resources.ListConfigResourcesRequest(  # type: ignore[misc]
                resource_types=(CLIENT_METRICS,) if version else ()
            ),
        )
    yield Step("IncrementalAlterConfigs deletes", 1, altering(TOPIC, "main", ("retention.ms", 1, None)))
    yield Step(
        "IncrementalAlterConfigs of the brokers deletes",
        1,
        altering(BROKER, "", ("log.retention.ms", 1, None)),
    )
    replaced = alter_configs.AlterConfigsRequest(
        resources=(
            alter_configs.AlterConfigsResource(
                resource_type=TOPIC,
                resource_name="main",
                configs=(alter_configs.AlterableConfig(name="max.message.bytes", value="3000"),),
            ),
        ),
        validate_only=False,
    )
    yield from each_version(alter_configs.AlterConfigsRequest, "AlterConfigs", lambda run: replaced)
    yield Step(
        "DescribeConfigs after the replacement",
        4,
        describing(TOPIC, "main", ("segment.bytes", "max.message.bytes")),
    )


def deletion_steps() -> Iterator[Step]:
    def deleting(offset: int, topic: str = "main", partition: int = 0) -> Callable[[Run], Request]:
        return lambda run: delete_records.DeleteRecordsRequest(
            topics=(
                delete_records.DeleteRecordsTopic(
                    name=topic,
                    partitions=(
                        delete_records.DeleteRecordsPartition(partition_index=partition, offset=offset),
                    ),
                ),
            ),
            timeout_ms=5000,
        )

    for version in range(3):
        yield Step(f"DeleteRecords v{version}", version, deleting(version + 1))
    yield Step("DeleteRecords below the start", 2, deleting(0))
    yield Step("DeleteRecords beyond the end", 2, deleting(9999))
    yield Step("DeleteRecords before everything", 2, deleting(-2))
    yield Step(
        "DeleteRecords of an internal topic that is not there", 2, deleting(0, topic="__consumer_offsets")
    )
    yield Step("DeleteRecords of an unknown topic", 2, deleting(0, topic="no-such-topic"))
    yield Step("Fetch v12: below the log start", 12, fetching(0))
    yield Step("DeleteRecords to the end", 2, deleting(-1))
    for version in range(6):
        yield Step(
            f"InitProducerId v{version}",
            version,
            lambda run: init_producer_id.InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=60000
            ),
        )
    yield Step(
        "InitProducerId with half an identity",
        4,
        lambda run: init_producer_id.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60000, producer_id=5
        ),
    )


def growth_steps() -> Iterator[Step]:
    def growing(
        name: str, count: int, assignments: tuple[tuple[int, ...], ...] | None = None
    ) -> Callable[[Run], Request]:
        return lambda run: create_partitions.CreatePartitionsRequest(
            topics=(
                create_partitions.CreatePartitionsTopic(
                    name=name,
                    count=count,
                    assignments=None
                    if assignments is None
                    else tuple(
                        create_partitions.CreatePartitionsAssignment(broker_ids=ids) for ids in assignments
                    ),
                ),
            ),
            timeout_ms=5000,
            validate_only=False,
        )

    for version in range(4):
        yield Step(f"CreatePartitions v{version}", version, growing("main", 3 + version))
    yield Step("CreatePartitions: no more", 3, growing("main", 6))
    yield Step("CreatePartitions: fewer", 3, growing("main", 1))
    yield Step("CreatePartitions: unknown topic", 3, growing("no-such-topic", 3))
    yield Step("CreatePartitions: wrong number of assignments", 3, growing("main", 8, ((1,),)))
    yield Step("CreatePartitions: unknown broker", 3, growing("main", 7, ((9,),)))
    for version in range(1, 6):
        yield Step(
            f"DeleteTopics v{version}",
            version,
            lambda run, version=version: delete_topics.DeleteTopicsRequest(  # type: ignore[misc]
                topic_names=(f"made-{version + 1}", "no-such-topic"), timeout_ms=5000
            ),
        )
    yield Step(
        "DeleteTopics of a name twice",
        5,
        lambda run: delete_topics.DeleteTopicsRequest(topic_names=("main", "main"), timeout_ms=5000),
    )
    for case, names, ids in (
        ("of an id twice", 0, 2),
        ("by name and id", 1, 1),
        ("by name and twice by id", 1, 2),
    ):
        yield Step(
            f"DeleteTopics {case}",
            6,
            lambda run, names=names, ids=ids: delete_topics.DeleteTopicsRequest(  # type: ignore[misc]
                topics=(delete_topics.DeleteTopicState(name="main"),) * names
                + (delete_topics.DeleteTopicState(topic_id=topic_id(run, "main")),) * ids,
                timeout_ms=5000,
            ),
        )
    yield Step(
        "DeleteTopics v6",
        6,
        lambda run: delete_topics.DeleteTopicsRequest(
            topics=(
                delete_topics.DeleteTopicState(name="manual"),
                delete_topics.DeleteTopicState(topic_id=b"\x09" * 16),
                delete_topics.DeleteTopicState(name="no-such-topic"),
                delete_topics.DeleteTopicState(name="main", topic_id=topic_id(run, "main")),
                delete_topics.DeleteTopicState(topic_id=ZERO_UUID),
                delete_topics.DeleteTopicState(name="stamped"),
                delete_topics.DeleteTopicState(name="stamped"),
                delete_topics.DeleteTopicState(name="main"),
            ),
            timeout_ms=5000,
        ),
    )

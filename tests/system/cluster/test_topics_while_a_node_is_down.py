"""Topics of three replicas, internal ones too, can be created while one of three brokers is down, as in Kafka."""

from __future__ import annotations

from confluent_kafka import Consumer

from strandline.testing.clusters import Cluster, running_cluster
from strandline.wire.api.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.system.cluster import story
from tests.system.cluster.story import NONE, shown, until_in_sync, write


def commit(cluster: Cluster, group: str, topic: str) -> int:
    """Reads a record and commits it; the first commit of a cluster creates `__consumer_offsets`."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe([topic])
        (message,) = consumer.consume(1, timeout=60)
        committed = consumer.commit(message=message, asynchronous=False)
        assert committed is not None
        return committed[0].offset
    finally:
        consumer.close()


def test_topics_are_created_while_one_of_three_nodes_is_down() -> None:
    with running_cluster(nodes=3) as cluster:
        cluster.node(3).kill()
        # New replicas are placed on it last once it is fenced, and not before.
        story.eventually(lambda: 3 not in story.brokers(cluster))
        minimum = CreatableTopicConfig(name="min.insync.replicas", value="2")
        topic = CreatableTopic(
            name="t", num_partitions=3, replication_factor=3, assignments=(), configs=(minimum,)
        )
        response = story.ask(cluster.node(1), CreateTopicsRequest(topics=(topic,)), 7)
        assert response.topics[0].error_code == NONE, response.topics[0].error_message
        story.eventually(lambda: shown(cluster, "t").in_sync == (1, 2))
        for partition in range(3):
            state = shown(cluster, "t", partition)
            assert state.replicas[2] == 3
            assert state.leader == state.replicas[0]
            assert write(cluster.node(state.leader), "t", ["x"], partition=partition) == (NONE, 0)
        assert commit(cluster, "g", "t") == 1
        assert 3 in shown(cluster, "__consumer_offsets").replicas
        cluster.node(3).start()
        for partition in range(3):
            until_in_sync(cluster, "t", (1, 2, 3), partition)
        until_in_sync(cluster, "__consumer_offsets", (1, 2, 3))

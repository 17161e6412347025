"""Observers and reading from the nearest replica (KIP-392), with librdkafka and Java."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from strandline.testing.clusters import Cluster
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.kafka_tools import KafkaTools
from tests.oracle.require import require
from tests.system.cluster import story
from tests.system.cluster.story import NONE, create, read, shown, until_in_sync, write
from tests.waiting import eventually

RECORDS = [f"r{n}" for n in range(20)]


def bytes_out(cluster: Cluster, node: int, topic: str, rack: str, offset: int = 0) -> tuple[int, int, int]:
    """Returns the parts of one consumer fetch at a node: error, preferred replica, size of the records."""
    with story.WireClient(cluster.node(node).bootstrap) as client:
        named = client.call(MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), 12)
        topic_id = named.topics[0].topic_id  # type: ignore[attr-defined]
        asked = FetchPartition(
            partition=0,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=1 << 20,
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=0,
            session_epoch=-1,
            topics=(FetchTopic(topic_id=topic_id, partitions=(asked,)),),
            forgotten_topics_data=(),
            rack_id=rack,
        )
        found = client.call(request, 16).responses[0].partitions[0]  # type: ignore[attr-defined]
    return found.error_code, found.preferred_read_replica, len(found.records or b"")


def test_consumer_is_sent_to_the_in_sync_replica_of_its_rack(cluster: Cluster) -> None:
    create(cluster, "near")
    assert write(cluster.node(1), "near", RECORDS) == (NONE, 0)
    eventually(lambda: bytes_out(cluster, 1, "near", "rack-3")[:2] == (NONE, 3))
    assert bytes_out(cluster, 1, "near", "rack-9")[1] == -1, "nobody is near: the leader answers"
    eventually(lambda: bytes_out(cluster, 3, "near", "rack-3")[2] > 0)
    assert [v for _, v in read(cluster.bootstrap, "near", **{"client.rack": "rack-3"})] == RECORDS


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
def test_java_consumer_reads_from_the_replica_of_its_rack(cluster: Cluster, tmp_path: Path) -> None:
    create(cluster, "near-java")
    assert write(cluster.node(1), "near-java", RECORDS) == (NONE, 0)
    settings = tmp_path / "consumer.properties"
    settings.write_text("client.rack=rack-2\n")
    with KafkaTools(java=require(JAVA), jars=require(KAFKA_JARS)) as tools:
        done = tools.run(
            *("ConsoleConsumer", "--bootstrap-server", cluster.bootstrap, "--topic", "near-java"),
            *("--from-beginning", "--max-messages", len(RECORDS), "--timeout-ms", 15_000),
            *("--command-config", settings),
        )
    assert done.lines == RECORDS, done.stderr


def test_observer_copies_serves_and_has_no_say(cluster: Cluster) -> None:
    create(cluster, "observed", [[1, 2]], {"strandline.observers": "rack-3"})
    assert write(cluster.node(1), "observed", RECORDS) == (NONE, 0)
    # Consumers of its rack read from it.
    eventually(lambda: bytes_out(cluster, 1, "observed", "rack-3")[:2] == (NONE, 3))
    eventually(lambda: bytes_out(cluster, 3, "observed", "rack-3")[2] > 0)
    assert [v for _, v in read(cluster.bootstrap, "observed", **{"client.rack": "rack-3"})] == RECORDS
    # It is neither a replica nor in sync, and a write does not wait for it.
    assert shown(cluster, "observed").in_sync == (1, 2)
    assert 3 not in shown(cluster, "observed").replicas
    with story.paused(cluster.node(3)):
        assert write(cluster.node(1), "observed", ["without it"]) == (NONE, len(RECORDS))
    # It is never elected, even when it alone is left of those that have the data.
    cluster.node(2).kill()
    until_in_sync(cluster, "observed", [1])
    assert write(cluster.node(1), "observed", ["x"])[0] == story.NOT_ENOUGH_REPLICAS
    cluster.node(2).start()
    until_in_sync(cluster, "observed", [1, 2])
    eventually(lambda: len(read(cluster.bootstrap, "observed", **{"client.rack": "rack-3"})) == 21)


def test_a_replica_cannot_be_named_an_observer(cluster: Cluster) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    create(cluster, "both")
    entry = ConfigEntry("strandline.observers", "2", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "both", incremental_configs=[entry])
    admin = story.admin(cluster)
    with pytest.raises(KafkaException, match="holds a replica"):
        admin.incremental_alter_configs([resource])[resource].result(10)

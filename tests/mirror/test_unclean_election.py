"""The source loses records that were copied, in an unclean election between real brokers."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import NewTopic

from strandline.testing.clusters import Cluster, cluster, wait_until
from strandline.testing.process import BrokerProcess
from tests.mirror.scene import Scene, scene, values_of
from tests.mirror.status_events import events
from tests.properties.effort import in_soak


def leader(two: Scene, topic: str) -> int:
    return int(two.admin("trio").list_topics(topic, timeout=30).topics[topic].partitions[0].leader)


def in_sync(two: Scene, topic: str) -> set[int]:
    return set(two.admin("trio").list_topics(topic, timeout=30).topics[topic].partitions[0].isrs)


def create_on(two: Scene, brokers: list[int], topic: str) -> None:
    admin = two.admin("trio")
    settings = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    new = NewTopic(topic, 1, replica_assignment=[brokers], config=settings)
    admin.create_topics([new])[topic].result(30)
    wait_until(lambda: in_sync(two, topic) == set(brokers), 30)


@in_soak
def test_records_that_an_unclean_election_takes_from_the_source_are_told(
    west: BrokerProcess, tmp_path: Path
) -> None:
    trio: Cluster
    with (
        cluster(nodes=3, replica_lag_time_max_ms=2000) as trio,
        scene(tmp_path, trio=trio.bootstrap, west=west.bootstrap) as two,
    ):
        create_on(two, [1, 2], "lossy")
        config = two.config({"trio->west.enabled": "true", "trio->west.topics": "lossy"})
        two.mirror(config).start()
        two.produce("trio", "lossy", [f"old{n}" for n in range(10)])
        two.read("west", "trio.lossy", 10)
        first = leader(two, "lossy")
        other = ({1, 2} - {first}).pop()
        trio.node(other).stop()
        wait_until(lambda: in_sync(two, "lossy") == {first}, 60)
        two.produce("trio", "lossy", [f"lost{n}" for n in range(7)])
        two.read("west", "trio.lossy", 17)
        trio.node(first).kill()
        trio.node(other).start()
        wait_until(lambda: leader(two, "lossy") == other, 60)
        two.produce("trio", "lossy", [f"new{n}" for n in range(5)])

        copied = two.read("west", "trio.lossy", 22)

        expected = (
            [f"old{n}" for n in range(10)] + [f"lost{n}" for n in range(7)] + [f"new{n}" for n in range(5)]
        )
        assert values_of(copied) == expected
        (event,) = events(two, config, "lossy-0")
        assert (event["kind"], event["first_offset"], event["offset_count"]) == ("truncated-at-source", 10, 7)

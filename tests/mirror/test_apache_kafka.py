"""Apache Kafka at one end, Strandline at the other, in both directions at once."""

from __future__ import annotations

import pytest

from strandline.testing.clusters import wait_until
from strandline.testing.process import BrokerProcess
from tests.mirror.copies import in_order
from tests.mirror.groups import committed, consume
from tests.mirror.scene import scene, values_of
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.require import require

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]


def test_topics_and_groups_go_both_ways(
    west: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("apache")
    kafka = ApacheKafka(
        java=require(JAVA),
        jars=require(KAFKA_JARS),
        directory=directory / "kafka",
        jvm_options=QUICK_START,
        settings={"group.min.session.timeout.ms": "1000"},
    )
    with kafka, scene(directory, kafka=kafka.bootstrap, west=west.bootstrap) as both:
        both.create_topic("kafka", "there", 2)
        both.create_topic("west", "here", 2)
        config = both.config(
            {
                "kafka->west.enabled": "true",
                "west->kafka.enabled": "true",
                "topics": "here, there, .*[.]here, .*[.]there",
                "sync.group.offsets.enabled": "true",
                "strandline.transaction.bytes": "2000",
            }
        )
        mirror = both.mirror(config)
        mirror.start()
        both.produce("kafka", "there", [f"t{n}" for n in range(400)], **{"compression.type": "lz4"})
        both.produce("west", "here", [f"h{n}" for n in range(400)], **{"compression.type": "gzip"})
        there = both.read("west", "kafka.there", 400)
        here = both.read("kafka", "west.here", 400)
        mirror.kill()
        both.produce("kafka", "there", [f"t{n}" for n in range(400, 500)])
        both.produce("west", "here", [f"h{n}" for n in range(400, 500)])
        mirror.start()
        there = both.read("west", "kafka.there", 500)
        here = both.read("kafka", "west.here", 500)

        assert in_order(there) == in_order(both.read("kafka", "there", 500))
        assert in_order(here) == in_order(both.read("west", "here", 500))

        both.create_topic("kafka", "single", 1)
        for alias, topic, copy, other in (
            ("kafka", "there", "kafka.there", "west"),
            ("west", "here", "west.here", "kafka"),
        ):
            group = f"mover from {alias}"
            read = consume(both, alias, topic, group, 150)
            last_partition_offsets = committed(both, alias, group)
            wait_until(lambda other=other, group=group: bool(committed(both, other, group)), 30)
            original = {(m.partition(), m.offset()): m.value() for m in both.read_all(alias, topic)}
            copies = {(m.partition(), m.offset()): m.value() for m in both.read_all(other, copy)}
            for (_, partition), offset in committed(both, other, group).items():
                expected = original.get((partition, last_partition_offsets[topic, partition]))
                assert copies.get((partition, offset)) == expected
            assert len(read) == 150
        # No loop: what came from one side is not sent back to it.
        names = set(both.admin("kafka").list_topics(timeout=30).topics)
        assert not {name for name in names if name.startswith("west.kafka.")}
        assert values_of(there)

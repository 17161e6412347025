"""Leaders killed with kill -9 under our own producer and consumer, on a cluster of three real nodes."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client import Admin, Consumer, Producer
from strandline.client.admin.topics import NewTopic
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.errors import KafkaError
from strandline.testing import Cluster, running_cluster
from tests.client.conftest import QUICK_GROUPS
from tests.client.consuming import Pollers, member, pollers, read, values
from tests.client.reading import run

PARTITIONS = 3
SECONDS_MAX = 60.0
# In a calm minute it is some tens of milliseconds. A batch that stays in the line of a dead broker takes six seconds.
ACK_SECONDS_MAX = 30.0
_LATE_ACK_SECONDS = 0.3


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[Cluster]:
    quick = {name.replace(".", "_"): value for name, value in QUICK_GROUPS.items()}
    with running_cluster(
        nodes=3,
        auto_create_topics_enable="false",
        replica_selector_class="org.apache.kafka.common.replica.RackAwareReplicaSelector",
        offsets_topic_num_partitions="3",
        **quick,
    ) as found:
        yield found


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """Yields the cluster with every node up, before and after."""
    yield shared_cluster
    for node in shared_cluster.nodes:
        if not node.is_running:
            node.start()


async def create(
    cluster: Cluster, topic: str, assignment: dict[int, tuple[int, ...]], **configs: str
) -> None:
    """A topic whose replicas lie where the test wants them; waits until all are in sync."""
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.create_topics([NewTopic(name=topic, assignment=assignment, configs=settings)])
        for _ in range(500):
            try:
                info = (await admin.describe_topics([topic]))[topic]
            except KafkaError:
                info = None
            if info is not None and all(
                each.leader_id == assignment[each.partition][0] and len(each.in_sync) == len(each.replicas)
                for each in info.partitions
            ):
                return
            await asyncio.sleep(0.02)
    raise AssertionError(f"{topic} did not come up: {info}")


class Load:
    """Numbered records to every partition, a few every millisecond, and which of them were acknowledged when."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self.acknowledged: dict[int, list[int]] = defaultdict(list)
        self.acknowledged_at: dict[int, list[float]] = defaultdict(list)
        self._is_stopping = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        number = 0
        while not self._is_stopping:
            for _ in range(PARTITIONS):
                promise = await self._producer.send(
                    self._topic, b"%d" % number, partition=number % PARTITIONS
                )
                promise.add_done_callback(lambda done, number=number: self._done(number, done))
                number += 1
            await asyncio.sleep(0.001)

    def _done(self, number: int, promise: Any) -> None:
        promise.result()  # No send may fail: the cluster recovers well within delivery.timeout.ms.
        self.acknowledged[number % PARTITIONS].append(number)
        self.acknowledged_at[number % PARTITIONS].append(time.monotonic())

    async def stop(self) -> None:
        self._is_stopping = True
        await self._task
        await self._producer.flush(SECONDS_MAX)

    async def seconds_until_next_ack(self, partition: int, moment: float) -> float:
        """Returns the seconds from a kill to the first acknowledgement by the next leader. Acknowledgements of the dead
        leader may still arrive, so the end of the longest pause counts."""
        times = self.acknowledged_at[partition]
        while not times or times[-1] < moment + _LATE_ACK_SECONDS:
            assert time.monotonic() - moment < ACK_SECONDS_MAX, "nothing is acknowledged any more"
            await asyncio.sleep(0.005)
        after = [moment, *(each for each in times if each > moment)]
        return max(pairwise(after), key=lambda pair: pair[1] - pair[0])[1] - moment


def by_partition(group: Pollers) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for records in group.seen.values():
        for record in records:
            found[record.partition].append(int(record.value))
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_acknowledged_record_is_read_once_and_in_order_although_leaders_are_killed(
    cluster: Cluster, topic: str, protocol: str
) -> None:
    async def main() -> None:
        await create(cluster, topic, {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2)})
        async with (
            pollers() as group,
            Producer(bootstrap_servers=cluster.bootstrap, linger_ms=1, acks="all") as producer,
        ):
            for number in (1, 2):
                group.add(
                    number,
                    await member(
                        cluster.bootstrap,
                        f"g-{topic}",
                        [topic],
                        group_protocol=protocol,
                        auto_commit_interval_ms=100,
                        session_timeout_ms=6000,
                    ),
                )
            await group.until(lambda: group.is_shared(PARTITIONS), "two share")
            load = Load(producer, topic)
            waits = []
            for node_id in (1, 2):
                await asyncio.sleep(0.5)
                moment = time.monotonic()
                cluster.node(node_id).kill()
                waits.append(await load.seconds_until_next_ack(node_id - 1, moment))
                await asyncio.to_thread(cluster.node(node_id).start)
            await load.stop()
            assert max(waits) < ACK_SECONDS_MAX
            print("kill to next acknowledgement, ms:", [round(each * 1000) for each in waits])
            expected = {partition: load.acknowledged[partition] for partition in range(PARTITIONS)}
            count = sum(map(len, expected.values()))
            await group.until(lambda: len(set(group.all_values())) >= count, "all is read")
            found = by_partition(group)
            for partition, numbers in expected.items():
                assert numbers == sorted(set(numbers)), "each promise kept once, in order"
                assert found[partition] == numbers

    run(main(), seconds_max=180)


def test_a_consumer_reads_from_the_replica_in_its_rack_and_from_the_leader_when_that_dies(
    cluster: Cluster, topic: str
) -> None:
    where = TopicPartition(topic, 0)

    async def main() -> None:
        await create(cluster, topic, {0: (1, 2, 3)})
        async with (
            Producer(bootstrap_servers=cluster.bootstrap, linger_ms=1) as producer,
            Consumer(
                bootstrap_servers=cluster.bootstrap, client_rack="rack-2", auto_offset_reset="earliest"
            ) as consumer,
        ):
            consumer.assign([where])
            state = consumer._subscription.state(where)
            found: list[ConsumerRecord] = []
            for number in range(5):
                await producer.send_and_wait(topic, b"%d" % number)
                found += await read(consumer, 1)
            assert state.preferred_replica == 2
            cluster.node(2).kill()
            for number in range(5, 10):
                await producer.send_and_wait(topic, b"%d" % number)
                found += await read(consumer, 1)
            assert values(found) == list(range(10))
            assert state.preferred_replica != 2

    run(main(), seconds_max=180)


def test_a_consumer_notices_that_its_log_was_cut_off_and_reads_what_replaced_it(
    cluster: Cluster, topic: str
) -> None:
    """KIP-320, where data is lost on purpose: an unclean election brings back a replica that missed five records."""
    where = TopicPartition(topic, 0)

    async def main() -> None:
        await create(
            cluster, topic, {0: (1, 2)}, min_insync_replicas="1", unclean_leader_election_enable="true"
        )
        async with (
            Producer(bootstrap_servers=cluster.bootstrap) as producer,
            Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer,
        ):
            consumer.assign([where])
            for number in range(5):
                await producer.send_and_wait(topic, b"%d" % number)
            cluster.node(2).kill()
            for number in range(5, 10):
                await producer.send_and_wait(topic, b"%d" % number)
            assert values(await read(consumer, 10)) == list(range(10))
            cluster.node(1).kill()
            await asyncio.to_thread(cluster.node(2).start)
            async with Producer(bootstrap_servers=cluster.bootstrap) as second:
                for number in range(100, 103):
                    await second.send_and_wait(topic, b"%d" % number)
            assert values(await read(consumer, 3)) == [100, 101, 102]
            assert await consumer.position(where) == 8
            assert consumer.metrics()["truncations-total"] == 1

    run(main(), seconds_max=180)

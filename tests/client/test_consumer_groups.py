"""Groups of several members: joining, leaving, dying, both protocols, on both brokers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client import Consumer
from strandline.client.consumer.group.callbacks import RebalanceListener
from strandline.client.errors import CommitFailedError
from tests.client.consuming import QUICK, fill, make_topic, member, new_group, pollers, read, values
from tests.client.reading import run

CLASSIC = [
    {"partition_assignment_strategy": [name]}
    for name in ("range", "roundrobin", "sticky", "cooperative-sticky")
]
NEW: dict[str, Any] = {"group_protocol": "consumer"}
PROTOCOLS = pytest.mark.parametrize(
    "settings", [*CLASSIC, NEW], ids=["range", "roundrobin", "sticky", "cooperative", "new"]
)
TWO_PROTOCOLS = pytest.mark.parametrize("settings", [CLASSIC[3], NEW], ids=["cooperative", "new"])


class Diary(RebalanceListener):
    def __init__(self) -> None:
        self.entries: list[tuple[str, list[int]]] = []

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        if partitions:
            self.entries.append(("assigned", [where.partition for where in partitions]))

    async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.entries.append(("revoked", [where.partition for where in partitions]))

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.entries.append(("lost", [where.partition for where in partitions]))


@PROTOCOLS
def test_members_share_join_and_leave_and_each_record_is_seen_once(
    bootstrap: str, topic: str, settings: dict[str, Any]
) -> None:
    make_topic(bootstrap, topic, partitions=6)
    fill(bootstrap, topic, range(300), partitions=6)
    group = new_group()

    async def main() -> None:
        async with pollers() as members:
            members.add(1, await member(bootstrap, group, [topic], **settings))
            await members.until(lambda: len(members.all_values()) == 300, "the first reads all")
            members.add(2, await member(bootstrap, group, [topic], **settings))
            members.add(3, await member(bootstrap, group, [topic], **settings))
            await members.until(lambda: members.is_shared(6, at_least=2), "three share six")
            fill(bootstrap, topic, range(300, 600), partitions=6)
            await members.until(lambda: len(members.all_values()) >= 600, "they read on")
            await members.stop(1)
            await members.until(lambda: members.is_shared(6, at_least=3), "two share six")
            fill(bootstrap, topic, range(600, 900), partitions=6)
            await members.until(lambda: len(members.all_values()) >= 900, "the others read on")
            # Nobody crashed and every member committed before it gave a partition up: nothing is seen twice.
            assert members.all_values() == list(range(900))

    run(main(), seconds_max=180)


@TWO_PROTOCOLS
def test_members_keep_reading_what_they_keep(bootstrap: str, topic: str, settings: dict[str, Any]) -> None:
    make_topic(bootstrap, topic, partitions=4)
    group = new_group()

    async def main() -> None:
        diary = Diary()
        async with pollers() as members:
            members.add(1, await member(bootstrap, group, [topic], diary, **settings))
            await members.until(lambda: members.is_shared(4), "one has all")
            members.add(2, await member(bootstrap, group, [topic], **settings))
            await members.until(lambda: members.is_shared(4, at_least=2), "two share")
            kept = [where.partition for where in members.assignments()[1]]
        assert diary.entries[0] == ("assigned", [0, 1, 2, 3])
        assert diary.entries[1] == ("revoked", sorted({0, 1, 2, 3} - set(kept)))
        assert diary.entries[2] == ("revoked", kept), "at the end, when it was closed"

    run(main(), seconds_max=180)


def test_eager_members_give_everything_up_and_get_it_again(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, partitions=4)
    group = new_group()

    async def main() -> None:
        diary = Diary()
        async with pollers() as members:
            members.add(1, await member(bootstrap, group, [topic], diary, **CLASSIC[0]))
            await members.until(lambda: members.is_shared(4), "one has all")
            members.add(2, await member(bootstrap, group, [topic], **CLASSIC[0]))
            await members.until(lambda: members.is_shared(4, at_least=2), "two share")
        assert [entry for entry, _ in diary.entries] == ["assigned", "revoked", "assigned", "revoked"]
        assert diary.entries[1] == ("revoked", [0, 1, 2, 3])

    run(main(), seconds_max=180)


@TWO_PROTOCOLS
def test_partitions_of_a_member_that_died_go_to_the_others(
    bootstrap: str, topic: str, settings: dict[str, Any]
) -> None:
    make_topic(bootstrap, topic, partitions=2)
    group = new_group()

    async def main() -> None:
        async with pollers() as members:
            for number in (1, 2):
                members.add(number, await member(bootstrap, group, [topic], **settings))
            await members.until(lambda: members.is_shared(2), "two share")
            dead = await members.stop(1, close=False)
            await kill(dead)
            fill(bootstrap, topic, range(10), partitions=2)
            await members.until(lambda: members.all_values() == list(range(10)), "the other reads all")

    async def kill(consumer: Consumer) -> None:
        """Ends a member as kill -9 does: its connections break, and it does not leave the group."""
        engine = consumer._engine
        assert engine is not None
        heartbeats = engine.membership._heartbeat_task  # type: ignore[union-attr]
        heartbeats.cancel()
        await engine._fetcher.close()
        await engine.cluster.close()

    run(main(), seconds_max=180)


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, partitions=4)
    group = new_group()

    async def main() -> None:
        diary = Diary()
        async with pollers() as members:
            members.add(1, await member(bootstrap, group, [topic], diary, group_instance_id="one"))
            members.add(2, await member(bootstrap, group, [topic], group_instance_id="two"))
            await members.until(lambda: members.is_shared(4, at_least=2), "two share")
            before = members.assignments()[2]
            told = len(diary.entries)
            await members.stop(2)
            members.add(2, await member(bootstrap, group, [topic], group_instance_id="two"))
            await members.until(lambda: members.assignments()[2] == before, "the second is back")
            await asyncio.sleep(0.6)  # three heartbeats: time for a rebalance to show
            assert len(diary.entries) == told
            assert members.is_shared(4, at_least=2)

    run(main(), seconds_max=180)


@TWO_PROTOCOLS
def test_a_member_that_does_not_poll_leaves_and_comes_back(
    bootstrap: str, topic: str, settings: dict[str, Any]
) -> None:
    make_topic(bootstrap, topic, partitions=2)
    fill(bootstrap, topic, range(4), partitions=2)
    group = new_group()

    async def main() -> None:
        diary = Diary()
        slow = await member(bootstrap, group, [topic], diary, max_poll_interval_ms=1500, **settings)
        await read(slow, 4)
        async with pollers() as members:
            members.add(2, await member(bootstrap, group, [topic], **settings))
            await members.until(lambda: members.is_shared(2, at_least=2), "the other has all", seconds_max=40)
            with pytest.raises(CommitFailedError):
                await slow.commit({TopicPartition(topic, 0): 1})
            members.add(1, slow)
            await members.until(lambda: members.is_shared(2), "both share")
        assert ("lost", [0, 1]) in diary.entries

    run(main(), seconds_max=180)


@TWO_PROTOCOLS
def test_new_partitions_and_new_topics_of_a_pattern_are_found(
    bootstrap: str, topic: str, settings: dict[str, Any]
) -> None:
    from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

    make_topic(bootstrap, f"{topic}-a", partitions=1)
    group = new_group()

    async def main() -> None:
        consumer = Consumer(
            QUICK, bootstrap_servers=bootstrap, group_id=group, metadata_max_age_ms=300, **settings
        )
        await consumer.start()
        consumer.subscribe(pattern=f"{topic}-.*")
        async with pollers() as members:
            members.add(1, consumer)
            await members.until(lambda: members.is_shared(1), "the one that is there")
            make_topic(bootstrap, f"{topic}-b", partitions=2)
            await members.until(lambda: members.is_shared(3), "the new one")
            admin = AdminClient({"bootstrap.servers": bootstrap})
            for done in admin.create_partitions([NewPartitions(f"{topic}-a", 2)]).values():
                done.result(10)
            await members.until(lambda: members.is_shared(4), "the new partition")

    run(main(), seconds_max=180)


@TWO_PROTOCOLS
def test_a_subscription_can_change_and_end(bootstrap: str, topic: str, settings: dict[str, Any]) -> None:
    for name in ("a", "b"):
        make_topic(bootstrap, f"{topic}-{name}")
        fill(bootstrap, f"{topic}-{name}", range(3))
    group = new_group()

    async def main() -> None:
        consumer = await member(bootstrap, group, [f"{topic}-a"], **settings)
        assert values(await read(consumer, 3)) == [0, 1, 2]
        consumer.subscribe([f"{topic}-b"])
        found = await read(consumer, 3)
        assert {record.topic for record in found} == {f"{topic}-b"}
        assert consumer.subscription() == {f"{topic}-b"}
        await consumer.unsubscribe()
        assert consumer.assignment() == set()
        consumer.assign([TopicPartition(f"{topic}-a", 0)])
        assert await consumer.poll(0.3) == [], "the group has read it all, and committed that"
        await consumer.close()

    run(main(), seconds_max=180)


def test_positions_survive_a_member_that_goes_and_one_that_comes(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    fill(bootstrap, topic, range(100))
    group = new_group()

    async def main() -> None:
        seen: list[int] = []
        for _ in range(4):
            consumer = await member(bootstrap, group, [topic], max_poll_records=25)
            seen += values(await read(consumer, 25))
            await consumer.close()
        assert seen == list(range(100))

    run(main(), seconds_max=180)

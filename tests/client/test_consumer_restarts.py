"""A consumer goes on when its broker dies and comes back: nothing is lost, and nothing committed comes again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client import Consumer
from strandline.testing.process import BrokerProcess
from tests.client.consuming import fill, make_topic, member, new_group, pollers, read, values
from tests.client.reading import run


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    quick = {
        "group.consumer.heartbeat.interval.ms": "200",
        "group.consumer.min.heartbeat.interval.ms": "200",
    }
    process = BrokerProcess(tmp_path / "data", quick)
    process.start()
    yield process
    process.stop()


@pytest.mark.parametrize("way", ["kill", "stop"])
def test_reading_goes_on_after_the_broker_comes_back(broker: BrokerProcess, topic: str, way: str) -> None:
    make_topic(broker.bootstrap, topic, partitions=2)
    fill(broker.bootstrap, topic, range(10), partitions=2)

    async def main() -> None:
        async with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
            assert sorted(values(await read(consumer, 10))) == list(range(10))
            getattr(broker, way)()
            assert await consumer.poll(0.3) == []
            await asyncio.to_thread(broker.start)
            await asyncio.to_thread(fill, broker.bootstrap, topic, range(10, 20), partitions=2)
            assert sorted(values(await read(consumer, 10))) == list(range(10, 20))

    run(main(), seconds_max=180)


@pytest.mark.parametrize("settings", [{}, {"group_protocol": "consumer"}], ids=["classic", "new"])
def test_a_group_goes_on_after_its_coordinator_comes_back(
    broker: BrokerProcess, topic: str, settings: dict[str, Any]
) -> None:
    make_topic(broker.bootstrap, topic, partitions=2)
    fill(broker.bootstrap, topic, range(10), partitions=2)
    group = new_group()

    async def main() -> None:
        async with pollers() as members:
            for number in (1, 2):
                consumer = await member(
                    broker.bootstrap,
                    group,
                    [topic],
                    session_timeout_ms=6000,
                    auto_commit_interval_ms=50,
                    **settings,
                )
                members.add(number, consumer)
            await members.until(lambda: members.is_shared(2), "two share")
            await members.until(lambda: members.all_values() == list(range(10)), "all is read")
            await asyncio.sleep(0.3)  # an automatic commit is due
            broker.kill()
            await asyncio.sleep(0.3)
            await asyncio.to_thread(broker.start)
            await asyncio.to_thread(fill, broker.bootstrap, topic, range(10, 20), partitions=2)
            await members.until(lambda: len(members.all_values()) >= 20, "they read on")
            await members.until(lambda: members.is_shared(2), "two share again")
            assert members.all_values() == list(range(20))

    run(main(), seconds_max=180)

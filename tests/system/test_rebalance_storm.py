"""Rebalance storms: 200 members in one group, restarted in waves, settle.

The broker counts its rebalances and their length; static membership and cooperative rebalancing show their effect in
those numbers and in the time that members stand still.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from strandline.broker.broker import Broker
from strandline.config import BrokerConfig
from strandline.groups.rebalance_times import BEGUN, COMPLETED, LONGEST_MS, TOTAL_MS
from strandline.node import launcher
from tests.compat.oracle_groups import prepare
from tests.system.storm import TOPIC, Crowd


@asynccontextmanager
async def running(data: Path, partitions: int) -> AsyncIterator[tuple[Broker, str]]:
    settings = launcher.embedded_settings(port=0, data=str(data), host="127.0.0.1")
    settings["offsets.topic.num.partitions"] = "1"
    node = launcher.RunningNode(BrokerConfig(settings), launcher.stderr_events(node=1, level="warn"))
    await node.start()
    try:
        await asyncio.to_thread(prepare, node.bootstrap, {TOPIC: partitions})
        yield node.broker, node.bootstrap
    finally:
        await node.stop()


def in_storm(partitions: int, test: Callable[[Broker, str], Coroutine[Any, Any, None]], data: Path) -> None:
    async def main() -> None:
        async with running(data, partitions) as (broker, bootstrap):
            await test(broker, bootstrap)

    asyncio.run(main())


async def end(crowd: Crowd) -> None:
    await asyncio.gather(*(member.stop() for member in crowd.members.values()))


def test_two_hundred_members_with_rolling_restarts_settle(tmp_path: Path) -> None:
    async def test(broker: Broker, bootstrap: str) -> None:
        crowd = Crowd(bootstrap, 400)
        await crowd.start(range(200))
        joined_s = await crowd.settle()
        for wave in range(4):
            for number in range(wave * 10, wave * 10 + 10):
                await crowd.restart(number)
        settled_s = await crowd.settle()
        counters = broker.node.counters
        assert counters.get(BEGUN) == counters.get(COMPLETED) > 0
        assert counters.get(TOTAL_MS) >= counters.get(LONGEST_MS) > 0
        mean_ms = counters.get(TOTAL_MS) / counters.get(COMPLETED)
        print(
            f"200 members settled in {joined_s:.2f} s, and {settled_s:.2f} s after the last of 40 restarts; "
            f"{counters.get(COMPLETED)} rebalances, {mean_ms:.0f} ms on average, "
            f"{counters.get(LONGEST_MS)} ms the longest"
        )
        assert all(len(member.held) == 2 for member in crowd.members.values())
        await end(crowd)

    in_storm(400, test, tmp_path / "data")


async def rolled(bootstrap: str, broker: Broker, *, static: bool, cooperative: bool) -> tuple[int, float]:
    """Ten members of fifty restart one after the other: rebalances, and seconds in which members stood still."""
    crowd = Crowd(bootstrap, 100, static=static, cooperative=cooperative)
    await crowd.start(range(50))
    await crowd.settle()
    before = broker.node.counters.get(COMPLETED)
    for member in crowd.members.values():
        member.idle_s = 0.0
    for number in range(10):
        await crowd.restart(number)
        await crowd.settle()
    for _ in range(3):
        await asyncio.sleep(0.1)
        await crowd.settle()
    found = broker.node.counters.get(COMPLETED) - before, crowd.idle_s
    await end(crowd)
    return found


def test_static_and_cooperative_members_calm_a_rolling_restart(tmp_path: Path) -> None:
    found: dict[str, tuple[int, float]] = {}

    def measure(name: str, *, static: bool, cooperative: bool) -> None:
        async def test(broker: Broker, bootstrap: str) -> None:
            found[name] = await rolled(bootstrap, broker, static=static, cooperative=cooperative)

        in_storm(100, test, tmp_path / name)

    measure("eager", static=False, cooperative=False)
    measure("cooperative", static=False, cooperative=True)
    measure("static", static=True, cooperative=False)
    for name, (rebalances, idle_s) in found.items():
        print(f"{name}: {rebalances} rebalances, members stood still for {idle_s:.2f} s in all")
    assert found["eager"][0] >= 10, "each restart leaves and joins"
    assert found["static"][0] == 0, "a static member comes back to its place"
    assert found["cooperative"][1] < found["eager"][1] / 2, "only who comes has to wait"

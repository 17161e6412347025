"""A disk that is full or fails where a cluster moves on: the node goes on, and no more is lost than the disk."""

from __future__ import annotations

import errno

import pytest

from strandline.sim.world import SimulatedNode, World
from tests.sim import cluster, scenarios
from tests.sim.test_disk_failure import begin, cluster_with_load, is_said_offline, led


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_refuses_the_epoch_of_a_new_leader_does_not_end_its_node(error: int) -> None:
    """A full one leads nevertheless, and takes records when there is room; one that fails goes offline."""

    async def scenario(world: World) -> None:
        nodes, load = await cluster_with_load(world)
        await begin(load, nodes)
        others = nodes[1:]
        for node in others:
            node.faults.fail("write", "/*/t-*/leader-epoch-checkpoint*", error)
        moved = [index for directory in ("/data", "/one", "/two") for index in led(nodes[0], directory)]
        await nodes[0].stop()
        if error == errno.ENOSPC:
            await cluster.until(lambda: _lead(others, moved))
            assert not any("offline" in line for node in others for line in node.said)
        else:
            await cluster.until(
                lambda: any(is_said_offline(n, d) for n in others for d in ("/data", "/one", "/two"))
            )
        assert all(node.is_running for node in others)
        for node in others:
            node.faults.heal()
            if error == errno.EIO:
                await node.stop()
                await node.start()
        await nodes[0].start()
        await load.finish()
        await load.check()
        await cluster.until(lambda: cluster.is_in_sync(world, load))

    scenarios.run(scenario, 1)


def _lead(nodes: list[SimulatedNode], partitions: list[int]) -> bool:
    found = {
        index for node in nodes for directory in ("/data", "/one", "/two") for index in led(node, directory)
    }
    return found >= set(partitions)

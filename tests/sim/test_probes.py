"""Only a broker that refuses connections at the address that brokers use is called gone."""

from __future__ import annotations

import asyncio

import pytest

from strandline.broker.metadata import controller_runtime
from strandline.quorum import messages as m
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import CONTROLLER_PORT, PORT, World, cluster_settings, host_name
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.sim import cluster, scenarios

IDS = (1, 2, 3)
OUTSIDE = 29_090


def test_a_new_controller_does_not_ask_for_brokers_at_the_addresses_of_clients() -> None:
    """Those may lead nowhere from where it is, as `localhost` does in a container."""

    async def scenario(world: World) -> None:
        voters = ",".join(f"{n}@{host_name(n)}:{CONTROLLER_PORT}" for n in IDS)
        nodes = []
        for n in IDS:
            inside = f"PLAINTEXT://{host_name(n)}:{PORT}"
            settings = cluster_settings(n, voters) | {
                "listeners": f"OUTSIDE://{host_name(n)}:{OUTSIDE + n},{inside},"
                f"CONTROLLER://{host_name(n)}:{CONTROLLER_PORT}",
                "advertised.listeners": f"OUTSIDE://localhost:{OUTSIDE + n},{inside}",
                "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
            }
            nodes.append(world.add_node(n, settings=settings))
        await world.start_all()
        await create_topic(await world.connect(nodes[0]), "t", partitions=6, replication_factor=3)
        await cluster.until(lambda: all("t" in node.broker.image.topics for node in nodes))
        leader = next(node for node in nodes if node.broker.quorum.is_leader)
        leader.life.context.run(leader.broker.quorum.step, m.ResignationRequested())
        await asyncio.sleep(5)
        assert not [line for node in nodes for line in node.said if "broker is gone" in line]
        partitions = nodes[0].broker.image.topics["t"].partitions.values()
        assert all(len(partition.in_sync) == 3 for partition in partitions)

    scenarios.run(scenario, 3)


def test_a_request_that_no_controller_can_decide_ends_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker that forwarded it would ask the next one, until none was left."""

    async def scenario(world: World) -> None:
        nodes = world.add_cluster(3)
        await world.start_all()
        client = await world.connect(nodes[0])
        await create_topic(client, "t", replication_factor=3)
        await cluster.until(lambda: all("t" in node.broker.image.topics for node in nodes))
        wanted = AlterConfigsResource(
            resource_type=2,
            resource_name="t",
            configs=(AlterableConfig(name="strandline.observers", config_operation=0, value="²"),),
        )
        request = IncrementalAlterConfigsRequest(resources=(wanted,), validate_only=False)
        await client.request(request, IncrementalAlterConfigsResponse, version=1)
        monkeypatch.setattr(controller_runtime, "plan_fence", lambda *_: 1 / 0)
        others = [node for node in nodes if not node.broker.quorum.is_leader]
        others[0].kill()
        await asyncio.sleep(3)
        assert all(node.is_running for node in nodes if node is not others[0])
        assert [line for node in nodes for line in node.said if "could not be decided" in line]

    scenarios.run(scenario, 3)

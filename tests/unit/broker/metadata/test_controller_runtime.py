"""The active controller outlives what can happen while it waits for a commit."""

from __future__ import annotations

import asyncio

from strandline.base.errors import ErrorCode
from strandline.broker.metadata.controller_apis import decide
from strandline.broker.metadata.controller_runtime import ControllerRuntime
from strandline.security.principal import ANONYMOUS
from strandline.wire.api.k62_broker_registration import BrokerRegistrationRequest
from strandline.wire.api.k63_broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.api.k64_unregister_broker import UnregisterBrokerRequest
from tests.disks import WatchedDisk
from tests.unit.broker.watched_disk import disk_of
from tests.unit.broker.world import World, in_world


def runtime_of(world: World) -> ControllerRuntime:
    assert world.broker.controller_runtime is not None
    return world.broker.controller_runtime


async def register(world: World) -> BrokerHeartbeatRequest:
    """Registers a broker 2; the heartbeat that unfences it."""
    request = BrokerRegistrationRequest(
        broker_id=2,
        cluster_id=world.broker.cluster_id,
        incarnation_id=b"\x02" * 16,
        listeners=(),
        features=(),
        rack=None,
    )
    response = await decide(runtime_of(world), request, 4, ANONYMOUS)
    return BrokerHeartbeatRequest(
        broker_id=2,
        broker_epoch=response.broker_epoch,
        current_metadata_offset=response.broker_epoch,
        want_fence=False,
        want_shut_down=False,
    )


@in_world()
async def test_a_broker_that_is_unregistered_while_it_is_unfenced_is_told_so(world: World) -> None:
    runtime = runtime_of(world)
    heartbeat = await register(world)
    unfenced, unregistered = await asyncio.gather(
        decide(runtime, heartbeat, 2, ANONYMOUS),
        decide(runtime, UnregisterBrokerRequest(broker_id=2), 0, ANONYMOUS),
    )
    assert (unfenced.error_code, unregistered.error_code) == (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NONE)


@in_world(disk=WatchedDisk)
async def test_a_cluster_that_could_not_begin_begins_later(world: World) -> None:
    runtime = runtime_of(world)
    runtime.state = runtime._new_state()
    disk_of(world).room = 0
    runtime._activate()
    async with asyncio.timeout(60):
        while not world.said("the first records of the cluster could not be written"):
            await asyncio.sleep(0)
        assert not runtime.state.image.features
        disk_of(world).room = None
        while not runtime.state.image.features:
            await asyncio.sleep(0.01)
    runtime.resigned()  # and have all of the log again
    runtime.is_active = True


@in_world(disk=WatchedDisk)
async def test_a_broker_that_could_not_be_fenced_is_fenced_later(world: World) -> None:
    runtime = runtime_of(world)
    heartbeat = await register(world)
    await decide(runtime, heartbeat, 2, ANONYMOUS)
    disk_of(world).room = 0
    await runtime._fence(2, heartbeat.broker_epoch)
    disk_of(world).room = None
    assert not runtime.state.image.brokers[2].fenced
    world.clock.ms += 60_000
    runtime._armed_for = None
    runtime._check_sessions()
    async with asyncio.timeout(60):
        while not runtime.state.image.brokers[2].fenced:
            await asyncio.sleep(0)

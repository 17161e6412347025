"""A broker whose registration is replaced registers again, at its start as well as later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.base.errors import ErrorCode
from strandline.broker.api.controller_forwarding import decide_here
from strandline.broker.metadata.controller_apis import RequestOrigin
from strandline.security.principal import ANONYMOUS
from strandline.sim.world import SimulatedNode, World
from strandline.wire.api.k64_unregister_broker import UnregisterBrokerRequest
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.seeds import seeds


async def _unregister(controller: SimulatedNode, node: SimulatedNode) -> None:
    request = UnregisterBrokerRequest(broker_id=node.node_id)
    origin = RequestOrigin(ANONYMOUS, "127.0.0.1", "")
    response = await controller.life.run(decide_here(controller.broker.services, request, 0, origin))
    assert response.error_code == ErrorCode.NONE


def _is_registered(controller: SimulatedNode, node: SimulatedNode, *, fenced: bool | None = None) -> bool:
    known = controller.broker.image.brokers.get(node.node_id)
    return known is not None and fenced in (None, known.fenced)


async def until_now(condition: Callable[[], bool]) -> None:
    """Waits until the condition holds, and returns at that moment, not in the next round of `until`."""
    while not condition():
        await asyncio.sleep(0.0005)


async def _once_registered(controller: SimulatedNode, node: SimulatedNode) -> None:
    await until_now(lambda: _is_registered(controller, node))


async def replaced_at_the_start(world: World) -> None:
    controller, first, node = world.add_controllers(1, 2)
    await asyncio.gather(controller.start(), first.start())
    starting = world.start_task(node.start())
    await _once_registered(controller, node)
    assert _is_registered(controller, node, fenced=True)
    assert not starting.done()
    await _unregister(controller, node)
    await until(starting.done)
    assert _is_registered(controller, node, fenced=False)


async def replaced_later(world: World) -> None:
    controller, node = world.add_controllers(1, 1)
    await world.start_all()
    await _unregister(controller, node)
    await _once_registered(controller, node)
    assert _is_registered(controller, node, fenced=True)
    await asyncio.sleep(0.5)  # much less than broker.heartbeat.interval.ms
    assert _is_registered(controller, node, fenced=False)


async def without_a_controller(world: World) -> None:
    """It goes when the broker has registered, and later when the broker has the metadata for that as well."""
    controller, node = world.add_controllers(1, 1)
    for is_behind, said in ((True, "metadata is behind"), (False, "do not unfence this broker yet")):
        await controller.start()
        await asyncio.sleep(1)
        starting = world.start_task(node.start())
        await asyncio.sleep(0)
        await until_now(lambda: hasattr(node.broker, "lifecycle") and node.broker.lifecycle.epoch >= 0)
        if not is_behind:
            lifecycle, quorum = node.broker.lifecycle, node.broker.quorum
            await until_now(lambda q=quorum, known=lifecycle: q.applied_offset > known.epoch)  # type: ignore[misc]
        controller.kill()
        await until(lambda said=said: any(said in line for line in node.said))  # type: ignore[misc]
        assert not starting.done()
        node.kill()
        starting.cancel()


@seeds(2)
def test_registration_that_is_replaced_before_it_counts_is_made_again(seed: int) -> None:
    scenarios.run(replaced_at_the_start, seed)


@seeds(2)
def test_a_broker_that_registers_again_is_not_fenced_for_another_interval(seed: int) -> None:
    scenarios.run(replaced_later, seed)


@seeds(1)
def test_start_that_waits_says_what_for(seed: int) -> None:
    scenarios.run(without_a_controller, seed)

"""Brokers whose connection has just broken: Metadata waits for the election of other leaders.

A client whose leader dies requests metadata within a millisecond, before the controller has elected another. If the
response names the dead leader, the client tries it for as long as its own timers say: a second or two with librdkafka.
So:

1. When a connection to another broker breaks, that broker is suspected and probed. Meanwhile a request for partitions
   that it leads waits for the controller's decision, for at most DECISION_SECONDS_MAX.
2. A broker that was fenced stays in the list of brokers for LISTED_SECONDS: a client that hands a partition over from
   one broker to the next needs both. It does not lead anything any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from strandline.base.waiting import within
from strandline.broker.node_context import NodeContext
from strandline.broker.nodes import is_gone
from strandline.controller.image import BrokerRegistration, TopicState

DECISION_SECONDS_MAX: Final = 0.25
LISTED_SECONDS: Final = 5.0


class SuspectedBrokers:
    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._suspects: dict[int, asyncio.Future[None]] = {}
        self._listed_until: dict[int, float] = {}

    def suspect(self, node_id: int) -> None:
        """Suspects a broker, because a connection to it has broken."""
        state = self._node.image.brokers.get(node_id)
        if node_id in self._suspects or state is None or state.fenced:
            return
        self._suspects[node_id] = asyncio.get_running_loop().create_future()
        self._node.tasks.start(self._clear_up(state))

    async def _clear_up(self, state: BrokerRegistration) -> None:
        decided = self._suspects[state.node_id]
        try:
            endpoint = state.endpoint(self._node.config.inter_broker_listener_name)
            if endpoint is None:
                return
            if await is_gone(
                self._node.network_to_brokers, endpoint.host, endpoint.port, DECISION_SECONDS_MAX
            ):
                with suppress(TimeoutError):
                    await within(DECISION_SECONDS_MAX, asyncio.shield(decided))
        finally:
            del self._suspects[state.node_id]
            if not decided.done():
                decided.set_result(None)

    def fenced(self, node_id: int) -> None:
        """Ends a suspicion: the broker is fenced in the image, which has the new leaders."""
        self._listed_until[node_id] = self._node.clock.monotonic() + LISTED_SECONDS
        decided = self._suspects.get(node_id)
        if decided is not None and not decided.done():
            decided.set_result(None)

    def concern(self, topics: Iterable[TopicState]) -> bool:
        """Returns True if a suspected broker leads a partition of these topics."""
        return bool(self._suspects) and any(
            partition.leader in self._suspects for topic in topics for partition in topic.partitions.values()
        )

    async def decided(self) -> None:
        for decision in list(self._suspects.values()):
            await asyncio.shield(decision)

    def listed_brokers(self) -> list[BrokerRegistration]:
        """Returns the brokers for responses to clients."""
        now = self._node.clock.monotonic()
        return [
            state
            for state in self._node.image.brokers.values()
            if not state.fenced or self._listed_until.get(state.node_id, 0.0) > now
        ]

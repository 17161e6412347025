"""The group that shares the partitions of a flow out among processes.

A flow's group is at the target, under the name `strandline-mirror-<flow>`: the offsets that transactions commit are
this group's, so that its coordinator refuses them from a process that is no member any more. Its members subscribe to
the topics of the target, whose partitions stand for those of the source; nobody reads them. The member that has the
journal's partition leads the flow: it writes checkpoints and heartbeats, and has settings follow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.group.callbacks import RebalanceListener
from strandline.client.consumer.group.member import GroupMetadata

_POLL_SECONDS: Final = 0.5


class Membership(RebalanceListener):
    """One process' membership in the group of a flow."""

    def __init__(
        self,
        consumer: Consumer,
        journal_topic: str,
        on_revoked: Callable[[list[TopicPartition]], Awaitable[None]],
    ) -> None:
        """`on_revoked` is awaited before partitions go to another process."""
        self._consumer = consumer
        self._journal = TopicPartition(journal_topic, 0)
        self._on_revoked = on_revoked
        self._assigned: dict[TopicPartition, None] = {}
        self._has_joined = False

    @property
    def assigned(self) -> tuple[TopicPartition, ...]:
        """The partitions of the target that this process writes."""
        return tuple(where for where in self._assigned if where != self._journal)

    @property
    def is_leader(self) -> bool:
        return self._journal in self._assigned

    @property
    def group_metadata(self) -> GroupMetadata:
        return self._consumer.group_metadata

    def subscribe(self, topics: Iterable[str]) -> None:
        """Takes part in sharing out these topics of the target."""
        names = {self._journal.topic, *topics}
        if names != self._consumer.subscription():
            self._consumer.subscribe(sorted(names), listener=self)

    async def run(self) -> None:
        """Polls for ever: that is when partitions are assigned and revoked."""
        while True:
            await self._consumer.poll(_POLL_SECONDS)

    # The listener

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        for where in partitions:
            # A position of its own: the committed offset is one of the source.
            self._consumer.seek(where, 0)
            self._assigned[where] = None
        if partitions:
            self._consumer.pause(*partitions)
        if not self._has_joined:
            # Coordinators give a static member that comes back its old partitions, whatever it subscribes to now.
            self._has_joined = True
            self._consumer.enforce_rebalance(
                "the member may have another subscription than before its restart"
            )

    async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        for where in partitions:
            self._assigned.pop(where, None)
        await self._on_revoked(partitions)

    async def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        await self.on_partitions_revoked(partitions)

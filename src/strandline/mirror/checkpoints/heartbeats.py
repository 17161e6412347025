"""Heartbeats as MirrorMaker 2 writes them: a record a second in the topic `heartbeats` of a cluster.

The flow east->west writes into the `heartbeats` of west, for those who watch the flow there, and, as the flow in the
other direction would, into that of east: MirrorClient knows upstream clusters by its copy `east.heartbeats` at west.
"""

from __future__ import annotations

from collections.abc import Callable

from strandline.client.admin.admin import Admin
from strandline.client.admin.topics import NewTopic
from strandline.client.producer.producer import Producer
from strandline.mirror.checkpoints.mm2_records import Heartbeat
from strandline.mirror.config.replication_policy import HEARTBEATS
from strandline.mirror.config.settings import FlowSettings
from strandline.mirror.own_topics import COMPACTED, create_topic, replication_factor


async def create_heartbeats_topic(flow: FlowSettings, admin: Admin) -> None:
    factor = await replication_factor(flow, admin, "heartbeats.topic.replication.factor")
    topic = NewTopic(name=HEARTBEATS, partitions=1, replication_factor=factor, configs=COMPACTED)
    await create_topic(admin, topic)


class Heartbeats:
    """The heartbeats of one flow."""

    def __init__(
        self, flow: FlowSettings, at_target: Producer, at_source: Producer, wall_ms: Callable[[], int]
    ) -> None:
        source, target = flow.source.alias, flow.target.alias
        self._rows = ((at_target, source, target), (at_source, target, source))
        self._wall_ms = wall_ms

    async def emit(self) -> None:
        """Writes one at each end."""
        for producer, source, target in self._rows:
            key, value = Heartbeat(source, target, self._wall_ms()).encode()
            await producer.send_and_wait(HEARTBEATS, value, key, partition=0)

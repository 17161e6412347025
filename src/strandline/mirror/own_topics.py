"""Topics that the mirror makes: their replication factor, and their creation while others may be quicker."""

from __future__ import annotations

from typing import Final

from strandline.client.admin.admin import Admin
from strandline.client.admin.topics import NewTopic
from strandline.client.errors import TopicExistsError
from strandline.mirror.config.settings import FlowSettings

# Of heartbeats, checkpoints and offset syncs, as MirrorMaker 2 has it.
COMPACTED: Final = {"cleanup.policy": "compact"}


async def replication_factor(flow: FlowSettings, admin: Admin, key: str) -> int:
    """Returns the replication factor of a topic of the mirror: the one that is set, or else the default,
    lowered to the number of brokers.
    """
    factor = flow.number(key)
    if flow.is_set(key):
        return factor
    return min(factor, max(1, len((await admin.describe_cluster()).nodes)))


async def create_topic(admin: Admin, topic: NewTopic) -> None:
    """Creates a topic unless it is there: another process may be quicker."""
    try:
        await admin.create_topics([topic])
    except TopicExistsError:
        return

"""Creates `_schemas`, or refuses one that would lose schemas or mix up their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strandline.client.admin.cluster import ClusterAdmin
from strandline.client.admin.configs import ConfigAdmin, ConfigResource
from strandline.client.admin.topics import TopicAdmin
from strandline.client.errors import KafkaError, TopicExistsError, UnknownTopicError
from strandline.client.world import ClientWorld

DEFAULT_TOPIC: Final = "_schemas"
_REPLICATION_FACTOR: Final = 3  # kafkastore.topic.replication.factor of Confluent's registry


class TopicChecks(TopicAdmin, ConfigAdmin, ClusterAdmin):
    """The admin calls that the registry needs: a complete Admin would take a third of the time of its start."""


class UnusableTopic(Exception):
    """The topic cannot hold schemas safely; the message says what to change."""


async def prepare_topic(client: Mapping[str, Any], topic: str, world: ClientWorld | None = None) -> str:
    """Creates the topic if it does not exist, checks it, and returns the cluster's id."""
    async with TopicChecks(client, world=world) as admin:
        cluster = await admin.describe_cluster()
        try:
            await _check(admin, topic)
        except UnknownTopicError:
            factor = min(_REPLICATION_FACTOR, len(cluster.nodes))
            try:
                await admin.create_topic(
                    topic, partitions=1, replication_factor=factor, configs={"cleanup.policy": "compact"}
                )
            except TopicExistsError:
                await _check(admin, topic)
        return str(cluster.cluster_id or "")


class TopicWatch:
    """Checks whether the topic is still the one that was read."""

    def __init__(self, client: Mapping[str, Any], topic: str, world: ClientWorld | None = None) -> None:
        self._admin = TopicAdmin(client, world=world)
        self._topic = topic
        self._id = b""

    async def start(self) -> None:
        await self._admin.start()
        self._id = (await self._admin.describe_topics([self._topic]))[self._topic].topic_id

    async def close(self) -> None:
        await self._admin.close()

    async def is_gone(self) -> bool:
        """True if the topic was deleted, even if a new one has its name. False while the cluster is away."""
        try:
            found = (await self._admin.describe_topics([self._topic]))[self._topic]
        except UnknownTopicError:
            return True
        except KafkaError:
            return False
        return found.topic_id != self._id


async def _check(admin: TopicChecks, topic: str) -> None:
    found = await admin.describe_topics([topic])
    description = found[topic]
    if isinstance(description, KafkaError):
        raise description
    count = len(description.partitions)
    if count != 1:
        raise UnusableTopic(
            f"topic {topic} has {count} partitions, and schemas need the order of a single one: "
            "name another topic, or delete this one if nothing needs it"
        )
    resource = ConfigResource.topic(topic)
    configs = (await admin.describe_configs([resource]))[resource]
    policy = configs["cleanup.policy"].value
    if policy != "compact":
        raise UnusableTopic(
            f"topic {topic} has cleanup.policy={policy}, which would delete schemas: "
            f"set cleanup.policy=compact on it"
        )

"""The topics that dead letters need, created like those that they serve."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from strandline.client.admin.admin import Admin
from strandline.client.admin.configs import ConfigResource
from strandline.client.admin.topics import NewTopic
from strandline.client.deadletter.letters import HEADERS_BYTES_MAX, RetryPolicy, dead_letter_topic
from strandline.client.errors import TopicExistsError


async def create_topics(admin: Admin, topics: Iterable[str], policy: RetryPolicy) -> None:
    """Creates the retry topics and dead letter topics that are not there yet.

    They take records as large as their source, with our headers on top. Dead letters are kept until somebody
    deletes them: a record that nobody could handle must not vanish because of retention.
    """
    sources = await admin.describe_topics(list(topics))
    existing = set(await admin.list_topics())
    for topic, info in sources.items():
        resource = ConfigResource.topic(topic)
        configs = (await admin.describe_configs([resource]))[resource]
        size_max = int(configs["max.message.bytes"].value or 0) + HEADERS_BYTES_MAX
        for name in (*policy.retry_topics(topic), dead_letter_topic(topic)):
            if name in existing:
                continue
            retention = {"retention.ms": "-1"} if name == dead_letter_topic(topic) else {}
            new_topic = NewTopic(
                name=name,
                partitions=len(info.partitions),
                configs={"max.message.bytes": str(size_max), **retention},
            )
            with suppress(TopicExistsError):  # another member was quicker
                await admin.create_topics([new_topic])

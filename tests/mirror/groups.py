"""Groups that read at the source and go on at the target."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions as GroupOffsets

from tests.mirror.scene import Scene

SYNCED = {"east->west.enabled": "true", "sync.group.offsets.enabled": "true"}


def consume(scene: Scene, alias: str, topic: str, group: str, count: int) -> list[str]:
    """Reads so many records as a member of a group and commits after the last one."""
    consumer = Consumer(
        {
            "bootstrap.servers": scene.bootstrap[alias],
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe([topic])
        found: list[str] = []
        while len(found) < count:
            message = consumer.poll(20)
            assert message is not None, f"{len(found)} of {count} records"
            assert message.error() is None, message.error()
            found.append(message.value().decode())
            last = message
        position = TopicPartition(topic, last.partition(), last.offset() + 1)
        consumer.commit(offsets=[position], asynchronous=False)
        return found
    finally:
        consumer.close()


def committed(scene: Scene, alias: str, group: str) -> dict[tuple[str, int], int]:
    admin = scene.admin(alias)
    result = admin.list_consumer_group_offsets([GroupOffsets(group)])[group].result(30)
    return {(each.topic, each.partition): each.offset for each in result.topic_partitions}

"""Records of the metadata log, as controllers write them."""

from __future__ import annotations

from strandline.wire.records.metadata import PartitionRecord, TopicRecord
from strandline.wire.schema import Message


def topic(name: str, number: int) -> list[Message]:
    topic_id = bytes((number,)) * 16
    partition = PartitionRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=(1,),
        isr=(1,),
        removing_replicas=(),
        adding_replicas=(),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )
    return [TopicRecord(name=name, topic_id=topic_id), partition]

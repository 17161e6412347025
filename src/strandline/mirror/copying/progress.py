"""The flow's progress: offsets of the source that its group at the target has committed.

They are committed for the topics of the target, because brokers take offsets only of topics that they have. The note
beside an offset says which topic of the source it is of, and the leader epoch of the record before it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition, uuid_text
from strandline.client.admin.groups import CommittedOffset, GroupAdmin
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import KafkaError, KafkaTimeoutError, error_for

_PAUSE_SECONDS: Final = 0.05


def encode_progress(topic_id: bytes, leader_epoch: int) -> str:
    """Returns the note beside a committed offset."""
    return json.dumps({"id": uuid_text(topic_id), "epoch": leader_epoch}, separators=(",", ":"))


def decode_progress(committed: CommittedOffset) -> tuple[OffsetAndMetadata, str]:
    """Returns the position at the source, and the id of its topic as text; the id is empty if the note is not ours."""
    try:
        note = json.loads(committed.metadata)
        return OffsetAndMetadata(committed.offset, "", int(note["epoch"])), str(note["id"])
    except (ValueError, KeyError, TypeError):
        return OffsetAndMetadata(committed.offset), ""


async def stable_offsets(
    admin: GroupAdmin, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, seconds: float
) -> dict[TopicPartition, CommittedOffset]:
    """Returns the committed offsets, once no open transaction has others for them. Raises UNSTABLE_OFFSET_COMMIT if one
    stays open for so many seconds.
    """
    wanted = None if partitions is None else list(partitions)
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await admin.list_group_offsets(group_id, wanted, require_stable=True, timeout=seconds)
        except KafkaTimeoutError as error:  # of one partition, whose error the call has retried
            raise error_for(ErrorCode.UNSTABLE_OFFSET_COMMIT, str(error)) from error
        except KafkaError as error:
            is_over = asyncio.get_running_loop().time() > deadline
            if error.code != ErrorCode.UNSTABLE_OFFSET_COMMIT or is_over:
                raise
        await asyncio.sleep(_PAUSE_SECONDS)

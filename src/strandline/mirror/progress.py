"""The flow's progress: offsets of the source that its group at the target has committed.

They are committed for the topics of the target, because brokers take offsets only of topics that they have. The note
beside an offset says which topic of the source it is of, and the leader epoch of the record before it.
"""

from __future__ import annotations

import json

from strandline.base.ids import uuid_text
from strandline.client.admin.groups import CommittedOffset
from strandline.client.consumer.subscription import OffsetAndMetadata


def encode_progress(topic_id: bytes, leader_epoch: int) -> str:
    """The note beside a committed offset."""
    return json.dumps({"id": uuid_text(topic_id), "epoch": leader_epoch}, separators=(",", ":"))


def decode_progress(committed: CommittedOffset) -> tuple[OffsetAndMetadata, str]:
    """The position at the source, and the id of its topic as text; the id is empty if the note is not ours."""
    try:
        note = json.loads(committed.metadata)
        return OffsetAndMetadata(committed.offset, "", int(note["epoch"])), str(note["id"])
    except (ValueError, KeyError, TypeError):
        return OffsetAndMetadata(committed.offset), ""

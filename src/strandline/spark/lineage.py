"""Whether a micro-batch is to be written: a pure decision over its number and the marker that was committed last.

A marker is a record that is committed in the same transaction as a batch's rows; it says which query wrote which batch.
Rules:
1. The batch behind the marked one is written.
2. The marked batch itself is skipped: its rows were committed together with the marker, and only Spark's own note of it
   was lost.
3. Everything else is refused. Skipping or writing it could lose or repeat rows, and only a person knows which.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum, auto


class LineageError(RuntimeError):
    """The checkpoint and the marker do not belong together; the text says what to do."""


class Decision(Enum):
    WRITE = auto()
    SKIP = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    query_id: str
    batch_id: int
    rows: int

    def to_bytes(self) -> bytes:
        return json.dumps({"query": self.query_id, "batch": self.batch_id, "rows": self.rows}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Marker:
        found = json.loads(data)
        return cls(query_id=found["query"], batch_id=int(found["batch"]), rows=int(found["rows"]))


def decide(marker: Marker | None, *, query_id: str, batch_id: int, name: str, may_begin: bool) -> Decision:
    """`may_begin` is the user's word that a new lineage begins with this batch, whatever was written before."""
    is_same_query = marker is not None and marker.query_id == query_id
    if marker is not None and is_same_query and marker.batch_id == batch_id:
        return Decision.SKIP
    if marker is not None and is_same_query and marker.batch_id == batch_id - 1:
        return Decision.WRITE
    if marker is not None and is_same_query and marker.batch_id > batch_id:
        raise LineageError(
            f"Spark asks to write batch {batch_id} of sink {name}, and batch {marker.batch_id} was committed already: "
            "the checkpoint is older than what was written, as after restoring a copy of it, and writing would repeat "
            "rows. Restore the checkpoint that belongs to the topics, or begin a new lineage with another name"
        )
    if may_begin:
        return Decision.WRITE
    if marker is not None and not is_same_query:
        raise LineageError(
            f"sink {name} was last written by query {marker.query_id} (batch {marker.batch_id}), and this is query "
            f"{query_id}: the checkpoint was deleted, or another query uses the name. Rows that were written before "
            "would be written again. Restore the checkpoint, choose another name, or say new_lineage=True if you "
            "want that"
        )
    if marker is None and batch_id == 0:
        return Decision.WRITE
    expected = "there is no marker" if marker is None else f"the marker is of batch {marker.batch_id}"
    raise LineageError(
        f"Spark asks to write batch {batch_id} of sink {name}, and {expected}: batches before it were not written by "
        "this sink, or the markers' topic was deleted. Whether this batch was written cannot be known. Say "
        "new_lineage=True to write it and go on from there"
    )

"""Decides whether a micro-batch is written, from its number and the commit marker of the last one.

A commit marker is a record that is committed in the same transaction as a batch's rows; it says which query wrote which
batch. Rules:
1. The batch after the marked one is written.
2. The marked batch itself is skipped: its rows were committed together with the marker, and only Spark's own note of it
   was lost. Its fingerprint must be the same as the marked one: with an older checkpoint Spark plans another batch
   under this number.
3. Everything else is refused. Skipping or writing it could lose or repeat rows, and only a person knows which.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)

QUERY_ID_PROPERTY: Final = "sql.streaming.queryId"


class LineageError(RuntimeError):
    """The checkpoint and the commit marker do not belong together; the text says what to do."""


class Decision(Enum):
    """The two things that can be done with a batch."""

    WRITE = auto()
    SKIP = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMarker:
    """The record that says which query wrote which batch."""

    query_id: str
    batch_id: int
    rows: int
    fingerprint: str | None = None  # None where Spark did not show it

    def to_bytes(self) -> bytes:
        """Returns the value of the marker's record."""
        fields = {"query": self.query_id, "batch": self.batch_id, "rows": self.rows}
        if self.fingerprint is not None:
            fields["fingerprint"] = self.fingerprint
        return json.dumps(fields).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> CommitMarker:
        """Returns the marker in a record's value."""
        fields = json.loads(data)
        return cls(
            query_id=fields["query"],
            batch_id=int(fields["batch"]),
            rows=int(fields["rows"]),
            fingerprint=fields.get("fingerprint"),
        )


def query_id_of(df: DataFrame) -> str | None:
    """Returns the id of the query whose foreachBatch runs; None outside of one."""
    return df.sparkSession.sparkContext.getLocalProperty(QUERY_ID_PROPERTY)


class BatchFingerprints:
    """Fingerprints of a query's batches, from its checkpoint. One object serves a whole run: finding the checkpoint
    takes a dozen calls into Spark, and asking it for a batch a few."""

    def __init__(self, df: DataFrame) -> None:
        self._log: Any = None
        try:
            jvm: Any = df.sparkSession._jvm
            state: Any = df.sparkSession._jsparkSession.sharedState()
            query = state.activeStreamingQueries().get(jvm.java.util.UUID.fromString(query_id_of(df)))
            self._log = query.offsetLog()
        except Exception as error:
            _log.debug("the checkpoint of a query cannot be looked at: %s", error)

    def fingerprint_of(self, batch_id: int) -> str | None:
        """Returns the fingerprint of a batch; None where Spark does not show it.

        A batch that Spark repeats has the same fingerprint as before, and one that it plans again under the same number
        has another. It is the time at which the batch was planned. The offsets at which it ends would not do: those of
        a directory of files are numbers that begin at 0 again, whatever the files.
        """
        try:
            metadata = _metadata(self._log.get(batch_id).get()).get()
            return f"planned-at-{metadata.batchTimestampMs()}"
        except Exception as error:
            # These names of Spark are not public. Without them a batch is known by its number alone.
            _log.debug("when batch %d was planned is not known: %s", batch_id, error)
            return None


def fingerprint_of(df: DataFrame, batch_id: int) -> str | None:
    """Returns the fingerprint of one batch, in foreachBatch."""
    return BatchFingerprints(df).fingerprint_of(batch_id)


def _metadata(offsets: Any) -> Any:
    """Returns the metadata of a batch in the checkpoint; Spark has called it by both names."""
    try:
        return offsets.metadataOpt()
    except Exception:
        return offsets.metadata()


def decide(
    marker: CommitMarker | None,
    *,
    query_id: str,
    batch_id: int,
    name: str,
    new_lineage: bool,
    fingerprint: str | None = None,
) -> Decision:
    """Returns the decision about a batch, or raises LineageError. With `new_lineage` the user has said that a new
    lineage begins with this batch, whatever was written before."""
    is_same_query = marker is not None and marker.query_id == query_id
    if marker is not None and is_same_query and marker.batch_id == batch_id:
        if None not in (fingerprint, marker.fingerprint) and fingerprint != marker.fingerprint:
            raise LineageError(
                f"Spark asks to write batch {batch_id} of sink {name}, and another batch of this number was committed "
                "already: the checkpoint is older than what was written, as after restoring a copy of it, and Spark "
                "has planned the batch again. Writing it would repeat rows and skipping it would lose some. Restore "
                "the "
                "checkpoint that belongs to the topics, or begin a new lineage with another name and new_lineage=True"
            )
        return Decision.SKIP
    if marker is not None and is_same_query and marker.batch_id == batch_id - 1:
        return Decision.WRITE
    if marker is not None and is_same_query and marker.batch_id > batch_id:
        raise LineageError(
            f"Spark asks to write batch {batch_id} of sink {name}, and batch {marker.batch_id} was committed already: "
            "the checkpoint is older than what was written, as after restoring a copy of it, and writing would repeat "
            "rows. Restore the checkpoint that belongs to the topics, or begin a new lineage with another name"
        )
    if new_lineage:
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

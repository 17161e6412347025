"""Whether a micro-batch is to be written: a decision over its number and the marker that was committed last.

A marker is a record that is committed in the same transaction as a batch's rows; it says which query wrote which batch.
Rules:
1. The batch behind the marked one is written.
2. The marked batch itself is skipped: its rows were committed together with the marker, and only Spark's own note of it
   was lost. It must be the same by its fingerprint: under an older checkpoint Spark plans another of this number.
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
    """The checkpoint and the marker do not belong together; the text says what to do."""


class Decision(Enum):
    WRITE = auto()
    SKIP = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    query_id: str
    batch_id: int
    rows: int
    fingerprint: str | None = None  # None where it could not be found out

    def to_bytes(self) -> bytes:
        found = {"query": self.query_id, "batch": self.batch_id, "rows": self.rows}
        if self.fingerprint is not None:
            found["fingerprint"] = self.fingerprint
        return json.dumps(found).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Marker:
        found = json.loads(data)
        return cls(
            query_id=found["query"],
            batch_id=int(found["batch"]),
            rows=int(found["rows"]),
            fingerprint=found.get("fingerprint"),
        )


def query_id_of(df: DataFrame) -> str | None:
    """The id of the query whose foreachBatch runs; None outside of one."""
    return df.sparkSession.sparkContext.getLocalProperty(QUERY_ID_PROPERTY)


class Plans:
    """When Spark planned the batches of a query, from its checkpoint. Made once for a run: finding the checkpoint's
    object takes a dozen calls into Spark, and asking it for a batch a few."""

    def __init__(self, df: DataFrame) -> None:
        self._log: Any = None
        try:
            jvm: Any = df.sparkSession._jvm
            shared: Any = df.sparkSession._jsparkSession.sharedState()
            running = shared.activeStreamingQueries().get(jvm.java.util.UUID.fromString(query_id_of(df)))
            self._log = running.offsetLog()
        except Exception as error:
            _log.debug("the checkpoint of a query cannot be looked at: %s", error)

    def fingerprint_of(self, batch_id: int) -> str | None:
        """A batch that Spark repeats has the same fingerprint as before, one that it plans anew under the same number
        has another. None where Spark does not let us see it.

        It is the time at which the batch was planned. The offsets at which it ends would not do: those of a directory
        of files are numbers that begin anew, whatever the files.
        """
        try:
            planned = _metadata(self._log.get(batch_id).get()).get()
            return f"planned-at-{planned.batchTimestampMs()}"
        except Exception as error:
            # These are no public names of Spark; without them a batch is known by its number alone.
            _log.debug("when batch %d was planned is not known: %s", batch_id, error)
            return None


def fingerprint_of(df: DataFrame, batch_id: int) -> str | None:
    """The same for one batch, in foreachBatch."""
    return Plans(df).fingerprint_of(batch_id)


def _metadata(offsets: Any) -> Any:
    """Of what the checkpoint says of a batch; Spark has called it by both names."""
    try:
        return offsets.metadataOpt()
    except Exception:
        return offsets.metadata()


def decide(
    marker: Marker | None,
    *,
    query_id: str,
    batch_id: int,
    name: str,
    may_begin: bool,
    fingerprint: str | None = None,
) -> Decision:
    """`may_begin` is the user's word that a new lineage begins with this batch, whatever was written before."""
    is_same_query = marker is not None and marker.query_id == query_id
    if marker is not None and is_same_query and marker.batch_id == batch_id:
        if None not in (fingerprint, marker.fingerprint) and fingerprint != marker.fingerprint:
            raise LineageError(
                f"Spark asks to write batch {batch_id} of sink {name}, and another batch of this number was committed "
                "already: the checkpoint is older than what was written, as after restoring a copy of it, and Spark "
                "has planned the batch anew. Writing it would repeat rows and skipping it would lose some. Restore the "
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

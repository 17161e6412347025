"""Exactly once from Spark into topics: each micro-batch is one transaction, and a replayed one is recognised.

    from strandline.spark import exactly_once

    query = exactly_once(df, bootstrap_servers="localhost:9092", topic="out").option("checkpointLocation", …).start()

A sink for foreachBatch, because the tasks of a Python stream writer do not learn the batch's number. The sink's name is
its transactional id. Without one it is made from the query's id, which lives in the checkpoint: a deleted checkpoint
begins a new lineage under a new name. With a name of your own a deleted checkpoint is an error instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from strandline.client.errors import KafkaError
from strandline.spark.batch_transaction import BatchTransaction, UnknownOutcomeError
from strandline.spark.lineage import QUERY_ID_PROPERTY as QUERY_ID_PROPERTY
from strandline.spark.lineage import Decision, LineageError, Marker, decide, fingerprint_of, query_id_of
from strandline.spark.markers import MarkerLog
from strandline.spark.placing import check_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQueryManager
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_log = logging.getLogger(__name__)

# Ten minutes: long for a batch, and how long readers of committed data wait behind a driver that died for good.
TRANSACTION_TIMEOUT_MS: Final = 600_000
# Spark runs all jobs of a query as one group, which is called like the run.
_RUN_ID_PROPERTY: Final = "spark.jobGroup.id"
# How often a batch is written before the query is given up.
_ATTEMPTS: Final = 3


def exactly_once(df: DataFrame, bootstrap_servers: str, **arguments: Any) -> DataStreamWriter:
    """A writer of this stream into topics, exactly once; give it a checkpoint and a trigger, and start it.

    The columns are those of `format("strandline")`. The arguments are those of `ExactlyOnceSink`.
    """
    sink = _ClosedWithItsQuery(bootstrap_servers, **arguments)
    sink.queries = df.sparkSession.streams
    return df.writeStream.foreachBatch(sink)


class ExactlyOnceSink:
    """What `foreachBatch` calls, in the driver."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        topic: str | None = None,
        name: str | None = None,
        new_lineage: bool = False,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        settings: Mapping[str, str] | None = None,
        on_commit: Callable[[int, Mapping[str, int]], None] | None = None,
    ) -> None:
        """`settings` are those of the client's producer, by Kafka's names. `new_lineage` lets this run begin anew where
        the checkpoint does not belong to what was written last. `on_commit` is told of every batch that is committed:
        its number, and how many rows each topic got; not of one that is skipped."""
        check_spark()
        self._settings = {**(settings or {}), "bootstrap.servers": bootstrap_servers}
        self._topic = topic
        self._name = name
        self._may_begin = new_lineage
        self._timeout_ms = transaction_timeout_ms
        self._on_commit = on_commit
        self._markers: dict[str, MarkerLog] = {}  # by the run of a query
        self._seen: set[str] = set()  # topics that had rows

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        query_id = query_id_of(df)
        if query_id is None:
            raise LineageError(
                "the query's id is not known: use this as a sink of foreachBatch, in a streaming query"
            )
        name = self._name or f"strandline-spark-{query_id}"
        fingerprint = fingerprint_of(df, batch_id)
        for attempt in range(1, _ATTEMPTS + 1):
            transaction = BatchTransaction(self._settings, name, self._timeout_ms)
            try:
                transaction.begin()
                # Asked after the transaction has begun: nobody else can commit under the name any more.
                markers = self._markers_of(df, name)
                decision = decide(
                    markers.last(transaction.ticket),
                    query_id=query_id,
                    batch_id=batch_id,
                    name=name,
                    may_begin=self._may_begin,
                    fingerprint=fingerprint,
                )
                if decision is Decision.SKIP:
                    _log.info("batch %d of %s was committed before: skipped", batch_id, name)
                    _run_without_writing(df)
                else:
                    marker = Marker(query_id=query_id, batch_id=batch_id, rows=0, fingerprint=fingerprint)
                    self._write(transaction, df, markers, marker)
                self._may_begin = False
                return
            except LineageError:
                raise
            except Exception as error:
                final = transaction.explain(error)
                if final is not None:
                    raise final from error
                transaction.abort()
                if attempt == _ATTEMPTS:
                    raise
                _log.warning("batch %d of %s is aborted and written again: %s", batch_id, name, error)
            finally:
                transaction.close()

    def close(self) -> None:
        """Lets go of the connections that it keeps between batches."""
        for run_id in list(self._markers):
            self.close_run(run_id)

    def close_run(self, run_id: str) -> None:
        markers = self._markers.pop(run_id, None)
        if markers is not None:
            markers.close()

    def _markers_of(self, df: DataFrame, name: str) -> MarkerLog:
        context = df.sparkSession.sparkContext
        run_id = context.getLocalProperty(_RUN_ID_PROPERTY) or name
        if run_id not in self._markers:
            if context.getConf().get("spark.speculation", "false") == "true":
                _log.warning(
                    "spark.speculation is on: the copy of a slow task that writes for %s fails, because each partition "
                    "must be written once, and a task that fails too often has the batch written again",
                    name,
                )
            self._markers[run_id] = MarkerLog(self._settings, name)
            self._opened(run_id)
        return self._markers[run_id]

    def _opened(self, run_id: str) -> None:
        """Connections are kept from now on."""

    def _write(
        self, transaction: BatchTransaction, df: DataFrame, markers: MarkerLog, marker: Marker
    ) -> None:
        rows = transaction.write(df, self._topic, self._seen)
        self._seen.update(rows)
        marker = replace(marker, rows=sum(rows.values()))
        transaction.mark(markers, marker)
        transaction.commit()
        markers.committed(marker, transaction.ticket)
        if self._on_commit is not None:
            self._on_commit(marker.batch_id, rows)


class _ClosedWithItsQuery(ExactlyOnceSink):
    """Nobody has this sink in hand to close it."""

    queries: StreamingQueryManager  # of the session that starts them; that of a batch is a copy, and hears of nothing

    def _opened(self, run_id: str) -> None:
        self.queries.addListener(_Closing(self, run_id))


class _Closing(StreamingQueryListener):
    def __init__(self, sink: _ClosedWithItsQuery, run_id: str) -> None:
        self._sink = sink
        self._run_id = run_id

    def onQueryStarted(self, event: Any) -> None:
        """Of no interest, as the next two."""

    def onQueryProgress(self, event: Any) -> None: ...

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None:
        if str(event.runId) == self._run_id:
            self._sink.close_run(self._run_id)
            self._sink.queries.removeListener(self)


def _run_without_writing(df: DataFrame) -> None:
    """A query that keeps state must have run every batch, also one whose rows are there: Spark sees to it that all its
    state was committed before it goes on (spark.sql.streaming.stateStore.commitValidation.enabled)."""
    df.write.format("noop").mode("overwrite").save()


def write_atomically(
    df: DataFrame,
    bootstrap_servers: str,
    *,
    name: str,
    topic: str | None = None,
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    settings: Mapping[str, str] | None = None,
) -> int:
    """Writes a batch DataFrame into topics, all rows or none; the number of rows. `name` is the transactional id: a job
    that runs under it again aborts what a dead one left. Run twice to success it writes twice: it has no checkpoint."""
    check_spark()
    transaction = BatchTransaction(
        {**(settings or {}), "bootstrap.servers": bootstrap_servers}, name, transaction_timeout_ms
    )
    try:
        transaction.begin()
        rows = sum(transaction.write(df, topic).values())
        if rows:
            transaction.commit()
        return rows
    except Exception as error:
        final = transaction.explain(error)
        if final is not None:
            raise final from error
        try:
            transaction.abort()
        except KafkaError as unreachable:
            _log.warning("%s is not aborted, and ends by itself after its timeout: %s", name, unreachable)
        if transaction.is_commit_asked:
            raise UnknownOutcomeError(
                f"whether the rows of {name} were committed is not known, for the answer to the commit did not come "
                f"({error}): they are all there, or none is. Look before you run the job again"
            ) from error
        raise
    finally:
        transaction.close()

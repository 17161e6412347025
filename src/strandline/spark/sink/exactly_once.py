"""Exactly once from Spark into topics: each micro-batch is one transaction, and a replayed one is recognised.

    from strandline.spark import exactly_once

    query = exactly_once(df, bootstrap_servers="localhost:9092", topic="out").option("checkpointLocation", …).start()

This is a sink for foreachBatch, because the tasks of a Python stream writer do not learn the batch's number. The sink's
name is its transactional id. By default it comes from the query's id, which is stored in the checkpoint, so a deleted
checkpoint begins a new lineage under a new name. If the user has chosen the name, a deleted checkpoint is an error
instead.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from strandline.client.errors import ConfigError, ErrorCode, KafkaError
from strandline.spark.cluster import RUNNING_QUERY_SETTINGS
from strandline.spark.options import OptionError
from strandline.spark.sink.batch_decision import (
    BatchFingerprints,
    CommitMarker,
    Decision,
    LineageError,
    decide,
    query_id_of,
)
from strandline.spark.sink.batch_transaction import BatchTransaction, UnknownOutcomeError
from strandline.spark.sink.commit_markers import MarkerLog
from strandline.spark.sink.restarting import RESTARTS_MAX, RestartingWriter
from strandline.spark.sink.settings import sink_settings
from strandline.spark.sink.shuffle_free_write import ForeignPartitionError
from strandline.spark.sink.task_writer import FatalWriteError
from strandline.spark.sink.transaction_prefetch import TransactionPrefetch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQueryManager
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_log = logging.getLogger(__name__)

# Ten minutes: more than a batch should take, and the time that readers of committed data wait after a driver died for
# good.
TRANSACTION_TIMEOUT_MS: Final = 600_000
# Spark runs all jobs of a query as one job group, whose name is the id of the run.
_RUN_ID_PROPERTY: Final = "spark.jobGroup.id"
# The error of a call into Spark when the query's thread is interrupted. A task's stack may have a similar text further
# below.
_INTERRUPTED: Final = re.compile(r"\n: java\.(?:lang|io|nio\.channels)\.\w*Interrupt\w*")
# The number of attempts at a batch before the query fails.
_ATTEMPTS: Final = 3
# After this number of rows without a shuffle the sink trusts that keys lie in the partitions of the tasks that read
# them.
_PROOF_ROWS: Final = 1000


def exactly_once(
    df: DataFrame, bootstrap_servers: str, *, restart: int | bool = False, **arguments: Any
) -> DataStreamWriter:
    """Returns a writer that writes this stream into topics exactly once; give it a checkpoint and a trigger, and start
    it.

    With `restart` the query begins again when Spark gave a Python process too little time to start: that number of
    times, or five times with True. The columns are those of `format("strandline")`. The other arguments are those of
    `ExactlyOnceSink`.
    """
    sink = _SelfClosingSink(bootstrap_servers, **arguments)
    sink.queries = df.sparkSession.streams
    writer = df.writeStream.foreachBatch(sink)
    if restart is False:
        return writer
    times = RESTARTS_MAX if restart is True else restart
    return cast("DataStreamWriter", RestartingWriter(writer, times))


@dataclass(slots=True)
class _Run:
    """The state of one run of a query, from batch to batch."""

    name: str
    markers: MarkerLog
    prefetch: TransactionPrefetch
    fingerprints: BatchFingerprints
    shuffle_free: bool = True  # whether a write without a shuffle is tried
    shuffle_free_rows: int = 0  # rows with keys that were written without a shuffle


class ExactlyOnceSink:
    """The function that `foreachBatch` calls for each micro-batch, in the driver."""

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
        """`settings` are those of the client's producer, by Kafka's names. `new_lineage` lets this run begin a new
        lineage where the checkpoint does not belong to the batch that was written last. `on_commit` is called for every
        committed batch, with its number and the number of rows for each topic. It is not called for a batch that is
        skipped."""
        self._settings = sink_settings(bootstrap_servers, settings)
        self._topic = topic
        self._name = name
        self._new_lineage = new_lineage
        self._timeout_ms = transaction_timeout_ms
        self._on_commit = on_commit
        self._runs: dict[str, _Run] = {}  # of queries, by Spark's id of the run
        self._known_topics: set[str] = set()  # topics that had rows

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        query_id = query_id_of(df)
        if query_id is None:
            raise LineageError(
                "the query's id is not known: use this as a sink of foreachBatch, in a streaming query"
            )
        name = self._name or f"strandline-spark-{query_id}"
        run = self._find_run(df, name)
        fingerprint = run.fingerprints.fingerprint_of(batch_id)
        with _kept_for_a_second_attempt(df, run):
            self._write_batch(df, batch_id, run, query_id, name, fingerprint)

    def _write_batch(
        self, df: DataFrame, batch_id: int, run: _Run, query_id: str, name: str, fingerprint: str | None
    ) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            transaction = run.prefetch.take()
            try:
                transaction.begin()
                decision = decide(
                    # The marker is read after the transaction has begun: from then on no other driver can commit under
                    # the name.
                    run.markers.last(transaction.ticket),
                    query_id=query_id,
                    batch_id=batch_id,
                    name=name,
                    new_lineage=self._new_lineage,
                    fingerprint=fingerprint,
                )
                if decision is Decision.SKIP:
                    _log.info("batch %d of %s was committed before: skipped", batch_id, name)
                    _run_without_writing(df)
                else:
                    marker = CommitMarker(
                        query_id=query_id, batch_id=batch_id, rows=0, fingerprint=fingerprint
                    )
                    self._write(transaction, df, run, marker)
                    run.prefetch.start()
                self._new_lineage = False
                return
            except LineageError:
                raise
            except Exception as error:
                final = transaction.final_error(error)
                if final is not None:
                    raise final from error
                transaction.abort()
                if attempt == _ATTEMPTS or _is_fatal(error) or _is_stopped(df, error):
                    raise
                # This holds for every error: with a shuffle the task that reads and may fail is another one than the
                # task that must not run twice.
                run.shuffle_free = False
                level = logging.INFO if isinstance(error, ForeignPartitionError) else logging.WARNING
                _log.log(level, "batch %d of %s is aborted and written again: %s", batch_id, name, error)
            finally:
                transaction.close()

    def close(self) -> None:
        """Closes the connections that the sink keeps between batches."""
        for run_id in list(self._runs):
            self.close_run(run_id)

    def close_run(self, run_id: str) -> None:
        """Closes the connections of one run of a query."""
        run = self._runs.pop(run_id, None)
        if run is not None:
            run.prefetch.close()
            run.markers.close()

    def _find_run(self, df: DataFrame, name: str) -> _Run:
        context = df.sparkSession.sparkContext
        run_id = context.getLocalProperty(_RUN_ID_PROPERTY) or name
        if run_id not in self._runs:
            if context.getConf().get("spark.speculation", "false") == "true":
                _log.warning(
                    "spark.speculation is on: the copy of a slow task that writes for %s fails, because each partition "
                    "must be written once, and a task that fails too often has the batch written again",
                    name,
                )
            for earlier in self._runs.values():
                if earlier.name == name:
                    earlier.prefetch.drain()
            markers = MarkerLog(self._settings, name)
            prefetch = TransactionPrefetch(
                lambda: BatchTransaction(
                    {**RUNNING_QUERY_SETTINGS, **self._settings}, name, self._timeout_ms, markers.admin
                )
            )
            self._runs[run_id] = _Run(name, markers, prefetch, BatchFingerprints(df))
            self._on_run_opened(run_id)
        return self._runs[run_id]

    def _on_run_opened(self, run_id: str) -> None:
        """Called when a run keeps connections from now on."""

    def _write(self, transaction: BatchTransaction, df: DataFrame, run: _Run, marker: CommitMarker) -> None:
        rows = transaction.write(df, self._topic, self._known_topics, run.shuffle_free)
        self._known_topics.update(rows)
        if run.shuffle_free:
            run.shuffle_free_rows += sum(rows.values())
        marker = replace(marker, rows=sum(rows.values()))
        transaction.mark(run.markers, marker)
        transaction.commit()
        run.markers.committed(marker, transaction.ticket)
        if self._on_commit is not None:
            self._on_commit(marker.batch_id, rows)


@contextmanager
def _kept_for_a_second_attempt(df: DataFrame, run: _Run) -> Iterator[None]:
    """Persists the rows of a batch that is likely to be written twice, so that Spark reads and counts them once. A
    batch is likely to be written twice if its rows may belong to partitions of other tasks, until enough rows have
    shown that they do not.
    """
    has_places = "key" in df.columns or "partition" in df.columns
    if not (run.shuffle_free and has_places and run.shuffle_free_rows < _PROOF_ROWS):
        yield
        return
    df.persist()
    try:
        yield
    finally:
        df.unpersist()


class _SelfClosingSink(ExactlyOnceSink):
    """A sink that the user cannot close: it closes with its query.

    A thread waits for the end of the query, in one long call into Spark. A listener would also be called for each
    micro-batch, and PySpark asks Spark for every figure of the progress in a call of its own: these 640 calls took CPU
    time from the next batch.
    """

    # The queries of the session that starts them. The session of a batch is a copy and has no queries.
    queries: StreamingQueryManager

    def _on_run_opened(self, run_id: str) -> None:
        threading.Thread(
            target=self._close_at_end, args=(run_id,), name="strandline-end-of-query", daemon=True
        ).start()

    def _close_at_end(self, run_id: str) -> None:
        try:
            for query in self.queries.active:
                if str(query.runId) == run_id:
                    query.awaitTermination()
        except Exception as error:
            # This is the query's own error, which the caller of start() sees, or Spark itself has ended.
            _log.debug("run %s has ended: %s", run_id, error)
        self.close_run(run_id)


def _is_fatal(error: Exception) -> bool:
    """True if the batch would fail for the same reason again: its columns or the sink's settings are wrong."""
    is_time_too_long = isinstance(error, KafkaError) and error.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return is_time_too_long or isinstance(error, OptionError | ConfigError | FatalWriteError)


def _is_stopped(df: DataFrame, error: Exception) -> bool:
    """True if the user stops the query: Spark interrupts its thread, cancels its jobs, and waits for both."""
    text = str(error)
    run_id = df.sparkSession.sparkContext.getLocalProperty(_RUN_ID_PROPERTY)
    is_cancelled = run_id is not None and run_id in text and "cancelled" in text
    return is_cancelled or _INTERRUPTED.search(text) is not None


def _run_without_writing(df: DataFrame) -> None:
    """Runs a batch whose rows are written already. A query that keeps state must run every batch, because Spark checks
    that all its state was committed before it goes on (spark.sql.streaming.stateStore.commitValidation.enabled)."""
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
    """Writes a batch DataFrame into topics, all rows or none, and returns the number of rows. `name` is the
    transactional id: a later job with the same name aborts the transaction that a dead one left open. A job that
    succeeds twice writes twice, because it has no checkpoint."""
    transaction = BatchTransaction(sink_settings(bootstrap_servers, settings), name, transaction_timeout_ms)
    try:
        transaction.begin()
        rows = sum(transaction.write(df, topic).values())
        if rows:
            transaction.commit()
        return rows
    except Exception as error:
        final = transaction.final_error(error)
        if final is not None:
            raise final from error
        try:
            transaction.abort()
        except KafkaError as unreachable:
            _log.warning("%s is not aborted, and ends by itself after its timeout: %s", name, unreachable)
        if transaction.is_commit_requested:
            raise UnknownOutcomeError(
                f"it is not known whether the rows of {name} were committed, because no response to the commit came "
                f"({error}): all of them are there, or none is. Check that before you run the job again"
            ) from error
        raise
    finally:
        transaction.close()

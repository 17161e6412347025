"""One transaction of a sink, as the driver conducts it: take over, write, mark, commit; or abort.

Steps, and what is left if the driver dies after each:
    begin     InitProducerId under the sink's name: fences the driver that had it, and aborts its open transaction
    write     rows are in their topics, uncommitted: the next `begin` aborts them
    mark      the commit marker too: the same
    commit    rows and marker are visible together, or neither is
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from strandline.client.admin.producers import TransactionDescription
from strandline.client.errors import ConnectionFailedError, KafkaError, KafkaTimeoutError, ProducerFencedError
from strandline.client.producer.shared_transaction import TransactionTicket
from strandline.client.sync import Admin, TransactionOwner
from strandline.spark.cluster import admin_settings
from strandline.spark.sink.batch_decision import CommitMarker
from strandline.spark.sink.commit_markers import MarkerLog
from strandline.spark.sink.row_partitioning import partition_counts
from strandline.spark.sink.task_writer import write_in_transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TakenOverError(RuntimeError):
    """Another driver uses the sink's name: this one must not go on."""


class TransactionTooLongError(RuntimeError):
    """The coordinator aborted the batch because it took longer than the transaction's timeout."""


class UnknownOutcomeError(RuntimeError):
    """The commit was requested and no response came: the rows are all there, or none is."""


class BatchTransaction:
    """One transaction under a sink's name."""

    def __init__(
        self, settings: Mapping[str, str], name: str, timeout_ms: int, admin: Admin | None = None
    ) -> None:
        """The caller closes `admin`. Without it the transaction opens an admin of its own when it needs one."""
        self._settings = dict(settings)
        self._name = name
        self._timeout_ms = timeout_ms
        self._shared_admin = admin
        self._owner: TransactionOwner | None = None
        self._ticket: TransactionTicket | None = None
        self._began_at = 0.0
        self.is_commit_requested = False

    def begin(self) -> None:
        """Begins the transaction. If it was begun before its batch, this only starts the clock."""
        self._began_at = time.monotonic()
        if self._ticket is not None:
            return
        owner_settings: dict[str, Any] = {
            **self._settings,
            "transactional.id": self._name,
            "transaction.timeout.ms": self._timeout_ms,
            "linger.ms": 0,  # it sends one record, and waits for it
        }
        self._owner = TransactionOwner(owner_settings)
        self._owner.init_transactions()
        self._began_at = time.monotonic()
        self._owner.begin_transaction()
        self._ticket = self._owner.ticket

    @property
    def ticket(self) -> TransactionTicket:
        """The ticket with which tasks write in this transaction."""
        assert self._ticket is not None, "begin comes first"
        return self._ticket

    def write(
        self, df: DataFrame, topic: str | None, known_topics: Iterable[str] = (), shuffle_free: bool = False
    ) -> dict[str, int]:
        """Writes the rows and returns the number of rows for each topic. `known_topics` are the topics that had rows in
        earlier batches. `shuffle_free` permits an attempt without a shuffle; raises ForeignPartitionError if that does
        not work."""
        with self._admin() as admin:
            counts = partition_counts(admin, topic, known_topics)
        return write_in_transaction(df, self.ticket, self._settings, topic, counts, shuffle_free=shuffle_free)

    def mark(self, markers: MarkerLog, marker: CommitMarker) -> None:
        """Writes the commit marker in this transaction."""
        assert self._owner is not None, "begin comes first"
        self._owner.send_and_wait(**markers.record(marker))

    def commit(self) -> None:
        """Commits the transaction, with the marker of its batch."""
        assert self._owner is not None, "begin comes first"
        self.is_commit_requested = True
        self._owner.commit_transaction()

    def final_error(self, error: BaseException) -> Exception | None:
        """Returns the error to raise if writing again cannot help; None if it can.

        A commit whose response did not come may have been carried out, and may be refused when it is requested again.
        Then the next attempt finds its marker.
        """
        if isinstance(error, KafkaTimeoutError | ConnectionFailedError):
            return None
        try:
            with self._admin() as admin:
                description = admin.describe_transactions([self._name])[self._name]
        except KafkaError:
            return None
        ticket = self._ticket
        if ticket is None or _is_committed(description, ticket):
            return None
        is_ours = (description.producer_id, description.epoch) == (ticket.producer_id, ticket.epoch)
        if is_ours and not isinstance(error, ProducerFencedError):
            return None
        seconds = time.monotonic() - self._began_at
        if seconds * 1000 >= self._timeout_ms:
            return TransactionTooLongError(
                f"the batch took {seconds:.1f} s and was aborted whole, because a transaction of sink {self._name} may "
                f"take {self._timeout_ms / 1000:.1f} s: raise transaction_timeout_ms (up to the brokers' "
                "transaction.max.timeout.ms), or make batches smaller with maxOffsetsPerTrigger"
            )
        return TakenOverError(
            f"another driver has taken over sink {self._name}: the batch was aborted whole. Stop one of the two, or "
            "give them different names"
        )

    def abort(self) -> None:
        """Fences the transaction: brokers drop its rows, and refuse tasks that are still running."""
        self.close()
        with self._admin() as admin:
            admin.fence_producers([self._name])

    @contextmanager
    def _admin(self) -> Iterator[Admin]:
        if self._shared_admin is not None:
            yield self._shared_admin
            return
        with Admin(admin_settings(self._settings)) as opened:
            yield opened

    def close(self) -> None:
        """Closes the producer that owns the transaction."""
        if self._owner is not None:
            self._owner.close(0)
            self._owner = None


def _is_committed(description: TransactionDescription, ticket: TransactionTicket) -> bool:
    """True if the ticket's own transaction was committed last. With transaction version 2 (KIP-890) a commit raises the
    epoch by one; a driver that takes over raises it first, and raises it again with a commit."""
    epochs = (ticket.epoch, ticket.epoch + 1) if ticket.is_version_2 else (ticket.epoch,)
    is_ours = description.producer_id == ticket.producer_id and description.epoch in epochs
    return is_ours and description.state in ("PrepareCommit", "CompleteCommit")

"""Begins the next transaction of a sink while Spark is still between two batches.

Taking over a transactional id takes a handful of round trips to brokers, and does not depend on the batch. Beginning
early is safe. Coordinators know of no open transaction before its first record, and a driver that takes the name over
meanwhile raises the epoch, so that brokers refuse writes with this one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from strandline.spark.sink.batch_transaction import BatchTransaction

_log = logging.getLogger(__name__)

# Batches that are further apart than this begin their transactions themselves: an early start would gain nothing, and
# brokers forget idle producers.
_AGE_SECONDS_MAX: Final = 60.0


class TransactionPrefetch:
    """Holds at most one transaction that begins before its batch."""

    def __init__(self, new_transaction: Callable[[], BatchTransaction]) -> None:
        self._new_transaction = new_transaction
        self._next: tuple[BatchTransaction, Future[float]] | None = None

    def start(self) -> None:
        """Begins a transaction in the background. If that fails, the batch that takes the transaction begins
        another."""
        assert self._next is None, "one at a time"
        transaction = self._new_transaction()
        begun_at: Future[float] = Future()

        def begin_now() -> None:
            try:
                transaction.begin()
                begun_at.set_result(time.monotonic())
            except BaseException as error:
                begun_at.set_exception(error)

        self._next = transaction, begun_at
        threading.Thread(target=begin_now, name="strandline-transaction-prefetch", daemon=True).start()

    def take(self) -> BatchTransaction:
        """Returns the transaction that has begun, or a new one that has not begun."""
        if self._next is None:
            return self._new_transaction()
        (transaction, begun_at), self._next = self._next, None
        try:
            age_seconds = time.monotonic() - begun_at.result()
        except Exception as error:
            _log.debug("a transaction could not be begun ahead: %s", error)
        else:
            if age_seconds <= _AGE_SECONDS_MAX:
                return transaction
        transaction.close()
        return self._new_transaction()

    def drain(self) -> None:
        """Waits until no transaction is being begun: a transaction that takes the name over late would take it from its
        next owner."""
        self.take().close()

    def close(self) -> None:
        """Closes the transaction once it has begun, without waiting for that."""
        if self._next is not None:
            (transaction, begun_at), self._next = self._next, None
            begun_at.add_done_callback(lambda _: transaction.close())

"""The next transaction of a sink, begun while Spark is still between two batches.

Taking over a transactional id is a handful of round trips to brokers, and nothing of it depends on the batch. Beginning
early is safe: coordinators know of no open transaction before its first record, and whoever takes the name over
meanwhile raises the epoch, so that what is written with this one is refused.
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

# Batches that are further apart begin their transactions themselves: nothing is gained there, and brokers forget.
_AGE_SECONDS_MAX: Final = 60.0


class TransactionAhead:
    def __init__(self, make: Callable[[], BatchTransaction]) -> None:
        self._make = make
        self._next: tuple[BatchTransaction, Future[float]] | None = None

    def begin(self) -> None:
        """In the background; what goes wrong is found when the transaction is begun again, by who needs it."""
        assert self._next is None, "one at a time"
        transaction = self._make()
        begun: Future[float] = Future()

        def work() -> None:
            try:
                transaction.begin()
                begun.set_result(time.monotonic())
            except BaseException as error:
                begun.set_exception(error)

        self._next = transaction, begun
        threading.Thread(target=work, name="strandline-transaction-ahead", daemon=True).start()

    def take(self) -> BatchTransaction:
        """One that has begun, or is to be."""
        if self._next is None:
            return self._make()
        (transaction, begun), self._next = self._next, None
        try:
            age_seconds = time.monotonic() - begun.result()
        except Exception as error:
            _log.debug("a transaction could not be begun ahead: %s", error)
        else:
            if age_seconds <= _AGE_SECONDS_MAX:
                return transaction
        transaction.close()
        return self._make()

    def settle(self) -> None:
        """Waits until nothing is under way: a name that is taken over late would be taken from who has it by then."""
        self.take().close()

    def close(self) -> None:
        """Waits for nothing."""
        if self._next is not None:
            (transaction, begun), self._next = self._next, None
            begun.add_done_callback(lambda _: transaction.close())

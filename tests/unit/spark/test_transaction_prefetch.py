"""A transaction that begins before its batch: who gets it, and what becomes of one that nobody wants."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from strandline.client.errors import KafkaTimeoutError
from strandline.spark.sink import transaction_prefetch
from strandline.spark.sink.transaction_prefetch import TransactionPrefetch
from strandline.testing.clusters import wait_until


class Transaction:
    def __init__(self, may_begin: threading.Event, error: Exception | None) -> None:
        self._may_begin = may_begin
        self._error = error
        self.is_begun = False
        self.is_closed = False

    def begin(self) -> None:
        assert self._may_begin.wait(60)
        if self._error is not None:
            raise self._error
        self.is_begun = True

    def close(self) -> None:
        self.is_closed = True


class Sink:
    def __init__(self) -> None:
        self.may_begin = threading.Event()
        self.may_begin.set()
        self.error: Exception | None = None
        self.made: list[Transaction] = []
        self.prefetch = TransactionPrefetch(self._new_transaction)

    def _new_transaction(self) -> Any:
        self.made.append(Transaction(self.may_begin, self.error))
        return self.made[-1]


def test_the_next_batch_gets_what_was_begun_and_the_one_after_another() -> None:
    sink = Sink()
    first: Any = sink.prefetch.take()
    assert not first.is_begun
    sink.prefetch.start()
    second: Any = sink.prefetch.take()
    assert second.is_begun
    third: Any = sink.prefetch.take()
    assert not third.is_begun
    assert len({id(each) for each in (first, second, third)}) == 3


def test_one_that_could_not_begin_is_closed_and_the_batch_begins_its_own() -> None:
    sink = Sink()
    sink.error = KafkaTimeoutError(None, "no coordinator")
    sink.prefetch.start()
    taken: Any = sink.prefetch.take()
    assert [each.is_closed for each in sink.made] == [True, False]
    assert taken is sink.made[1]


def test_one_that_has_waited_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_prefetch, "_AGE_SECONDS_MAX", -1.0)
    sink = Sink()
    sink.prefetch.start()
    taken: Any = sink.prefetch.take()
    assert not taken.is_begun
    assert sink.made[0].is_closed


def test_closing_does_not_wait_and_what_begins_later_is_closed_then() -> None:
    sink = Sink()
    sink.may_begin.clear()
    sink.prefetch.start()
    sink.prefetch.close()
    assert not sink.made[0].is_closed
    sink.may_begin.set()
    wait_until(lambda: sink.made[0].is_closed, 60)
    sink.prefetch.start()
    sink.prefetch.drain()
    assert all(each.is_closed for each in sink.made)

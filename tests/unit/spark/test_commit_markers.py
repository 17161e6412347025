"""Epochs tell which producers had a sink's name, and so whether its marker must be read again."""

from __future__ import annotations

import pytest

from strandline.client.producer.shared_transaction import TransactionTicket
from strandline.spark.sink import commit_markers, exactly_once
from strandline.spark.sink.commit_markers import is_next_epoch


def ticket(epoch: int, *, producer_id: int = 7, is_version_2: bool = False) -> TransactionTicket:
    return TransactionTicket(
        transactional_id="sink", producer_id=producer_id, epoch=epoch, is_version_2=is_version_2
    )


@pytest.mark.parametrize(("is_version_2", "next_epoch"), [(False, 4), (True, 5)])
def test_the_next_transaction_is_ours_if_nobody_had_the_name_in_between(
    is_version_2: bool, next_epoch: int
) -> None:
    committed = ticket(3, is_version_2=is_version_2)
    for epoch in range(8):
        assert is_next_epoch(committed, ticket(epoch, is_version_2=is_version_2)) is (epoch == next_epoch)
    assert not is_next_epoch(committed, ticket(next_epoch, producer_id=8, is_version_2=is_version_2))
    assert not is_next_epoch(committed, ticket(next_epoch, is_version_2=not is_version_2))


def test_a_sink_waits_longer_for_another_than_brokers_let_a_dead_one_hold_it_up() -> None:
    look_seconds = 10  # transaction.abort.timed.out.transaction.cleanup.interval.ms as shipped
    assert exactly_once.TRANSACTION_TIMEOUT_MS / 1000 + look_seconds < commit_markers._READ_TIMEOUT_SECONDS

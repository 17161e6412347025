"""How the end of a transaction is told from the retry of another."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch, TopicPartition
from strandline.base.moment import Moment
from strandline.base.planned import Planned
from strandline.transactions.planned import TxnResponse
from strandline.transactions.shard import TransactionSettings, TransactionShard

NOW = Moment(1.0, 1_700_000_000_000)
PARTITION = TopicPartition("t", 0)


class Coordinator:
    """A coordinator of one transactional id that carries out every plan at once."""

    def __init__(self) -> None:
        self.shard = TransactionShard(TransactionSettings(60_000, 10**9))

    def _apply(self, planned: Planned[TxnResponse]) -> TxnResponse:
        for change in planned.records:
            self.shard.apply(change, NOW)
        return planned.response

    def begin(self) -> ProducerIdAndEpoch:
        return self._apply(self.shard.plan_init("x", 10_000, None, 7, 2, NOW)).identity

    def transact(self, identity: ProducerIdAndEpoch, version: int) -> ProducerIdAndEpoch:
        """A transaction that is added to, aborted and completed; who the producer is then."""
        self._apply(self.shard.plan_add("x", identity, [PARTITION], version, NOW))
        self.end(identity, version)
        self.shard.apply(self.shard.plan_complete("x", NOW), NOW)
        transaction = self.shard.transactions["x"]
        return ProducerIdAndEpoch(transaction.producer_id, transaction.epoch)

    def end(self, identity: ProducerIdAndEpoch, version: int) -> TxnResponse:
        return self._apply(self.shard.plan_end("x", identity, False, version, None, NOW))


def test_a_retried_end_is_told_the_epoch_that_it_has_bumped() -> None:
    coordinator = Coordinator()
    first = coordinator.begin()
    second = coordinator.transact(first, 2)
    assert coordinator.end(first, 2).identity == second == first._replace(epoch=first.epoch + 1)


def test_one_whose_place_an_old_client_has_taken_is_fenced_and_not_told_that_one_s_epoch() -> None:
    coordinator = Coordinator()
    fenced = coordinator.transact(coordinator.begin(), 2)
    coordinator.transact(coordinator.begin(), 0)
    with pytest.raises(KafkaError) as refused:
        coordinator.end(fenced, 2)
    assert refused.value.code == ErrorCode.PRODUCER_FENCED

"""The machine of transactions over random histories: its records rebuild it, and no decision breaks a rule."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import KafkaError
from strandline.base.ids import ProducerIdAndEpoch, TopicPartition
from strandline.base.moment import Moment
from strandline.base.planned import Planned
from strandline.transactions.planned import NeedsProducerId, TxnResponse
from strandline.transactions.shard import TransactionSettings, TransactionShard
from strandline.transactions.transaction import EPOCH_MAX, NO_EPOCH, PREPARED, Transaction
from strandline.wire.records.transaction_log import decode_entry, encode_key, encode_value

SETTINGS = TransactionSettings(timeout_max_ms=900_000, expiration_ms=1_000_000)
NAMES = ("a", "b")
ACTS = ("init", "init again", "add", "end", "complete", "fence", "expire")


class History:
    """The machine, what was written, and what its clients know."""

    def __init__(self) -> None:
        self.shard = TransactionShard(SETTINGS)
        self.records: list[tuple[bytes, bytes | None]] = []
        self.known: dict[str, ProducerIdAndEpoch] = {}
        self.given: set[tuple[int, int]] = set()
        self.now_ms = 1_000_000
        self.next_id = 1000

    def now(self) -> Moment:
        return Moment(self.now_ms / 1000, self.now_ms)

    def write(self, change: Transaction) -> None:
        self.records.append((encode_key(change.transactional_id), encode_value(change.record(), 1)))
        before = self.shard.transactions.get(change.transactional_id)
        if before is not None and before.producer_id == change.producer_id:
            assert change.epoch >= before.epoch, "an epoch went back"
        self.shard.apply(change, self.now())

    def carry_out(self, name: str, planned: Planned[TxnResponse]) -> None:
        for change in planned.records:
            self.write(change)
        if planned.response.identity.producer_id >= 0:
            self.known[name] = planned.response.identity

    def act(self, name: str, act: str, flag: bool, version: int) -> None:
        for fresh_id in (None, self.next_id):
            try:
                self._act(name, act, flag, version, fresh_id)
                return
            except NeedsProducerId:
                self.next_id += 1
            except KafkaError:
                return

    def _act(self, name: str, act: str, flag: bool, version: int, fresh_id: int | None) -> None:
        shard, now = self.shard, self.now()
        identity = self.known.get(name, ProducerIdAndEpoch(7, 0))
        transaction = shard.transactions.get(name)
        if act in ("init", "init again"):
            expected = identity if act == "init again" else None
            self.carry_out(name, shard.plan_init(name, 60_000, expected, fresh_id, version, now))
        elif act == "add":
            partitions = [TopicPartition("t", number) for number in range(1 + flag)]
            self.carry_out(name, shard.plan_add(name, identity, partitions, version, now))
        elif act == "end":
            self.carry_out(name, shard.plan_end(name, identity, flag, version, fresh_id, now))
        elif act == "complete" and transaction is not None and transaction.state in PREPARED:
            self.write(shard.plan_complete(name, now))
        elif act == "fence":
            self.now_ms += 61_000
            for late in shard.timed_out(self.now()):
                self.write(shard.plan_fence(late, fresh_id, version, self.now()))
        elif act == "expire":
            self.now_ms += 1_000_001 if flag else 0
            for old in shard.expired(self.now()):
                self.records.append((encode_key(old), None))
                shard.forget(old)


steps = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(ACTS), st.booleans(), st.sampled_from((0, 2))),
    max_size=60,
)


@given(steps=steps, first_epoch=st.sampled_from((0, EPOCH_MAX - 4)))
def test_machine_rebuilt_from_its_records_equals_the_live_one(
    steps: list[tuple[str, str, bool, int]], first_epoch: int
) -> None:
    history = History()
    if first_epoch:
        history.act("a", "init", False, 2)
        nearly = replace(history.shard.transactions["a"], epoch=first_epoch)
        history.write(nearly)
        history.known["a"] = ProducerIdAndEpoch(nearly.producer_id, first_epoch)
    for name, act, flag, version in steps:
        history.now_ms += 10
        history.act(name, act, flag, version)
        history.shard.check_invariants()
    rebuilt = TransactionShard(SETTINGS)
    for key, value in history.records:
        entry = decode_entry(key, value)
        assert entry is not None
        rebuilt.replay(*entry, history.now())
    rebuilt.check_invariants()
    # `last_epoch` is not written down, as in Kafka.
    live = {n: replace(t, last_epoch=NO_EPOCH) for n, t in history.shard.transactions.items()}
    assert rebuilt.transactions == live


@given(steps=steps)
def test_no_identity_is_given_to_two_beginners(steps: list[tuple[str, str, bool, int]]) -> None:
    history = History()
    given: list[ProducerIdAndEpoch] = []
    for name, act, flag, version in steps:
        history.now_ms += 10
        history.known.pop(name, None) if act == "init" else None
        history.act(name, act, flag, version)
        if act == "init" and name in history.known:
            given.append(history.known[name])
    assert len(given) == len(set(given))

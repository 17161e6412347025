"""The rules that a transaction must never break, as its producers see it and as the logs say: Kafka's rules, not our
code's.

At each step:
1. No response says more than the committed part of the coordinator's log; no marker is written whose
   decision that does not say.
2. No two processes are the same producer (id and epoch); with version 2 no two transactions are.
3. Once a process has begun, no earlier one of the same transactional id writes or is told that all is well.
4. In a partition the epochs of a producer never go back, and its sequences follow each other without a gap, from 0
   unless the partition has lost what it knew. No batch outside of a transaction comes in the midst of one.
5. What is acknowledged is in the committed part of its partition.

In the end, when everything has had time:
6. No transaction is open. No record is there twice, and none that was acknowledged is missing.
7. All records of a transaction have the same fate, which is the one its producer was told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import ProducerIdAndEpoch
from strandline.sim.history import Violation
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from strandline.wire.api.k26_end_txn import EndTxnRequest
from strandline.wire.record_batch import BatchHeader, records_in
from strandline.wire.records.markers import read_marker
from strandline.wire.records.transaction_log import TransactionLogValue, decode_entry
from tests.sim.led_partition import Batch as Placed
from tests.sim.led_partition import LedPartition

ONGOING = 1
DECIDED = {True: (2, 4), False: (3, 5)}  # prepared and complete, of a commit and of an abort
VERSION_TWO = 5  # of EndTxn


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One transaction as its producer knows it."""

    process: str
    numbers: list[int] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    fate: str = "aborted"  # until a commit is asked for: then "unknown" until it is told


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One record on its way to a partition."""

    name: str | None  # the transactional id
    identity: ProducerIdAndEpoch
    index: int
    number: int
    header: BatchHeader
    data: bytes
    is_transactional: bool
    attempt: Attempt | None


class TransactionJudge:
    def __init__(self, log: LedPartition) -> None:
        self._log = log
        self._count = 0
        self._said: dict[str, list[TransactionLogValue]] = {}  # committed, by transactional id
        self._owner: dict[ProducerIdAndEpoch, str] = {}
        self._began: dict[str, tuple[float, list[str]]] = {}  # when the last process did, and all so far
        self._names: dict[int, str] = {}  # of producer ids
        self._last: dict[
            tuple[int, int], tuple[int, int]
        ] = {}  # epoch and sequence, by partition and producer
        self._open: dict[tuple[int, int], None] = {}
        self._lost_state: dict[tuple[int, int], None] = {}
        self._sent: dict[tuple[int, int], None] = {}
        self.attempts: list[Attempt] = []
        self.batches: dict[int, Batch] = {}  # by number
        self.plain: list[tuple[int, int]] = []  # acknowledged outside of transactions: partition and number
        self.committed_count = 0

    def fail(self, verdict: str, message: str) -> None:
        violation = Violation(verdict, message)
        loop: Any = asyncio.get_running_loop()
        loop.fail(violation)
        raise violation

    def _read(self) -> None:
        batches, end = self._log.batches, self._log.committed_end
        while self._count < len(batches) and batches[self._count][0].last_offset < end:
            for record in records_in(batches[self._count][1]):
                entry = decode_entry(record.key or b"", record.value)
                if entry is not None and entry[1] is not None:
                    self._said.setdefault(entry[0], []).append(entry[1])
            self._count += 1

    def _has_said(self, name: str, identity: ProducerIdAndEpoch, states: tuple[int, ...]) -> bool:
        self._read()
        return any(
            (value.producer_id, value.producer_epoch) == identity and value.transaction_status in states
            for value in self._said.get(name, ())
        )

    # Responses of the coordinator

    def given(self, process: str, request: Any, response: Any, arrived_at: float) -> None:
        if isinstance(request, InitProducerIdRequest):
            if response.error_code == ErrorCode.NONE and request.transactional_id is not None:
                self._begun(process, request.transactional_id, response, request.producer_id < 0)
            return
        if isinstance(request, EndTxnRequest):
            name, identity = (
                request.transactional_id,
                ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            )
            if response.error_code == ErrorCode.NONE:
                self._ended(process, name, identity, request.committed, response)
        else:
            name = request.v3_and_below_transactional_id
            identity = ProducerIdAndEpoch(
                request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
            )
            codes = [
                each.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ]
            if any(codes):
                return
            if not self._has_said(name, identity, (ONGOING,)):
                self.fail("told-uncommitted", f"{process} is told that its partitions are added")
        if isinstance(request, EndTxnRequest) and response.error_code != ErrorCode.NONE:
            return
        began_at, processes = self._began[name]
        if process != processes[-1] and arrived_at > began_at:
            self.fail(
                "zombie-response", f"{process} is told that all is well, after {processes[-1]} has begun"
            )

    def _own(self, process: str, name: str, identity: ProducerIdAndEpoch) -> None:
        owner = self._owner.setdefault(identity, process)
        self._names[identity.producer_id] = name
        if owner != process:
            self.fail("identity-twice", f"{process} is {identity}, as {owner} was")

    def _begun(self, process: str, name: str, response: Any, is_new_producer: bool) -> None:
        identity = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        self._own(process, name, identity)
        if not self._has_said(name, identity, tuple(range(8))):
            self.fail("told-uncommitted", f"{process} is told to be {identity}")
        _, processes = self._began.get(name, (0.0, []))
        if is_new_producer:
            self._began[name] = (asyncio.get_running_loop().time(), [*processes, process])

    def _ended(
        self, process: str, name: str, identity: ProducerIdAndEpoch, is_commit: bool, response: Any
    ) -> None:
        new = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        if new.producer_id >= 0:
            if new == identity:
                self.fail("epoch-not-bumped", f"{process} stays {identity} after a transaction")
            self._own(process, name, new)
        bumped = identity._replace(epoch=identity.epoch + 1)
        if not any(self._has_said(name, each, DECIDED[is_commit]) for each in (identity, bumped, new)):
            self.fail("told-uncommitted", f"{process} is told that {identity} has ended")

    # Partitions

    def seen_in(self, index: int) -> Callable[[BatchHeader, bytes], None]:
        return lambda header, batch: self._appended(index, header, batch)

    def _appended(self, index: int, header: BatchHeader, batch: bytes) -> None:
        place = (index, header.producer_id)
        identity = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        epoch, sequence = self._last.get(place, (-1, -1))
        if header.producer_epoch < epoch:
            self.fail("epoch-went-back", f"{identity} writes after epoch {epoch}")
        if header.is_control:
            self._marked(index, identity, batch)
            return
        if header.is_transactional:
            self._check_zombie(identity)
            self._open[place] = None
        elif place in self._open:
            self.fail("plain-in-transaction", f"{identity} has a transaction open")
        if header.producer_epoch > epoch:
            is_in_order = header.base_sequence == 0 or (epoch < 0 and place in self._lost_state)
        else:
            is_in_order = header.base_sequence == sequence + 1
        if not is_in_order:
            self.fail("out-of-order", f"{identity} writes {header.base_sequence} after {epoch, sequence}")
        self._last[place] = (header.producer_epoch, header.last_sequence)

    def _check_zombie(self, identity: ProducerIdAndEpoch) -> None:
        name = self._names[identity.producer_id]
        _, processes = self._began[name]
        owner = self._owner.get(identity)
        if owner is not None and owner != processes[-1]:
            self.fail("zombie-write", f"{owner} writes as {identity}, after {processes[-1]} has begun")

    def _marked(self, index: int, identity: ProducerIdAndEpoch, batch: bytes) -> None:
        marker = read_marker(batch)
        assert marker is not None
        name = self._names[identity.producer_id]
        if not self._has_said(name, identity, DECIDED[marker.is_commit][:1]):
            self.fail("marker-before-decision", f"{identity} is ended in partition {index}")
        place = (index, identity.producer_id)
        self._open.pop(place, None)
        epoch, sequence = self._last.get(place, (-1, -1))
        self._last[place] = (identity.epoch, -1 if identity.epoch > epoch else sequence)

    def will_change_leader(self, index: int) -> None:
        """Notes that the leader will change: refused batches are forgotten, and batches that were not committed may be.
        A producer of which nothing is left may begin with any sequence then."""
        for place in self._sent:
            if place[0] == index:
                self._lost_state[place] = None

    def changed_leader(self, index: int, batches: list[Placed]) -> None:
        for books in (self._last, self._open):
            for place in [place for place in books if place[0] == index]:
                del books[place]  # type: ignore[attr-defined]
        for header, _ in batches:
            place = (index, header.producer_id)
            epoch, sequence = self._last.get(place, (-1, -1))
            if header.is_control:
                self._open.pop(place, None)
                self._last[place] = (header.producer_epoch, -1 if header.producer_epoch > epoch else sequence)
                continue
            self._last[place] = (header.producer_epoch, header.last_sequence)
            if header.is_transactional:
                self._open[place] = None

    def sent(self, batch: Batch) -> None:
        self._sent[batch.index, batch.identity.producer_id] = None
        self.batches[batch.number] = batch
        if batch.attempt is not None:
            batch.attempt.numbers.append(batch.number)

    def acknowledged(self, batch: Batch, partition: LedPartition) -> None:
        if batch.name is not None and not batch.is_transactional:
            return  # its sequence is not its own
        committed = [
            data for header, data in partition.batches if header.last_offset < partition.committed_end
        ]
        if batch.data not in committed:
            self.fail("lost-write", f"number {batch.number} is acknowledged and not committed")
        if batch.attempt is not None and batch.is_transactional:
            batch.attempt.acknowledged.append(batch.number)
        else:
            self.plain.append((batch.index, batch.number))

    # The end

    def check_end(self, partitions: list[LedPartition]) -> None:
        fates: dict[int, str] = {}
        for partition in partitions:
            for number, fate in _fates_in(partition.batches).items():
                if number in fates:
                    raise Violation("duplicate", f"number {number} is there twice")
                fates[number] = fate
        if "open" in fates.values():
            raise Violation("hanging-transaction", "a transaction is never ended")
        for index, number in self.plain:
            if number not in fates:
                raise Violation("lost-write", f"number {number} of partition {index} is gone")
        for attempt in self.attempts:
            self._check_attempt(attempt, fates)

    def _check_attempt(self, attempt: Attempt, fates: dict[int, str]) -> None:
        found = {number: fates.get(number, "gone") for number in attempt.numbers}
        acknowledged = {found[number] for number in attempt.acknowledged}
        if attempt.fate == "committed":
            self.committed_count += 1
            if acknowledged - {"committed"}:
                raise Violation("lost-write", f"{attempt.process} has committed {found}")
        elif attempt.fate == "aborted":
            if "committed" in found.values():
                raise Violation("aborted-read", f"{attempt.process} has not committed {found}")
        elif len(acknowledged) > 1:
            raise Violation("torn-transaction", f"{attempt.process} wrote {found}")


def _fates_in(batches: list[Placed]) -> dict[int, str]:
    """Returns the fate of each record for a read_committed reader, by its number."""
    fates: dict[int, str] = {}
    open_numbers: dict[int, list[int]] = {}
    for header, data in batches:
        if header.is_control:
            marker = read_marker(data)
            assert marker is not None
            for number in open_numbers.pop(header.producer_id, []):
                fates[number] = "committed" if marker.is_commit else "aborted"
            continue
        for record in records_in(data):
            number = int(record.value or b"")
            if number in fates:
                raise Violation("duplicate", f"number {number} is there twice")
            fates[number] = "open" if header.is_transactional else "plain"
            if header.is_transactional:
                open_numbers.setdefault(header.producer_id, []).append(number)
    return fates

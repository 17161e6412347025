"""Transactions: records to many partitions, and consumers' offsets, that become visible together or not at all.

States and the steps from one to another (KIP-98; KIP-890 for version 2):

    UNINITIALIZED --init--> READY --begin--> IN_TRANSACTION --commit--> COMMITTING --coordinator--> READY
    IN_TRANSACTION, COMMITTING --a record or an offset fails, or abort--> ABORTABLE --abort--> READY
    any --another producer took over, or the coordinator says that nothing can help--> FATAL

In version 1 the producer adds each partition to the transaction at the coordinator before records go there, and
each group before its offsets; after a request without a response it takes a new epoch before the next transaction,
because the request may still arrive. In version 2 brokers add them themselves, and each end of a transaction gives the
producer its next epoch, so that a delayed request of one transaction cannot reach into the next. The cluster
decides on the version, by its feature `transaction.version`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final, TypeVar

from strandline.base.errors import ErrorCode
from strandline.base.ids import ProducerIdAndEpoch, TopicPartition
from strandline.client.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionAbortedError,
    error_for,
)
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.coordinators import COORDINATOR_MOVED, GROUP, TRANSACTION
from strandline.client.producer import sequences
from strandline.client.producer.batch import PartitionQueue
from strandline.client.producer.idempotence import Idempotence
from strandline.client.producer.transaction_requests import (
    add_offsets_request,
    add_partitions_request,
    end_request,
    first_error,
    init_request,
    partition_errors,
    txn_offset_commit_request,
)
from strandline.wire.api.k22_init_producer_id import InitProducerIdResponse
from strandline.wire.api.k24_add_partitions_to_txn import AddPartitionsToTxnResponse
from strandline.wire.api.k25_add_offsets_to_txn import AddOffsetsToTxnResponse
from strandline.wire.api.k26_end_txn import EndTxnResponse
from strandline.wire.api.k28_txn_offset_commit import TxnOffsetCommitResponse
from strandline.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

TRANSACTION_FEATURE: Final = "transaction.version"
# The highest versions that belong to version 1 of transactions, by API key.
_V1_VERSIONS_MAX: Final = {22: 4, 24: 3, 25: 3, 26: 4, 28: 4}
# From version 4 on AddPartitionsToTxn is for brokers.
_V2_VERSIONS_MAX: Final = {24: 3}

_FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
# Errors after which the transaction must be aborted, but the producer can go on.
_ABORTABLE: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
_GROUP_MOVED_ON: Final = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH}
)


class State(Enum):
    """The state of a producer's transactions."""

    UNINITIALIZED = auto()
    READY = auto()
    IN_TRANSACTION = auto()
    COMMITTING = auto()
    ABORTABLE = auto()
    FATAL = auto()


# The states in which the transaction may still be committed: its records are sent.
_OPEN: Final = (State.IN_TRANSACTION, State.COMMITTING)


class Transactions(Idempotence):
    """The idempotence of a transactional producer, and the requests of its transactions."""

    is_transactional = True

    def __init__(
        self,
        cluster: ClusterClient,
        on_fatal: Callable[[KafkaError], None],
        on_abortable: Callable[[KafkaError], None],
    ) -> None:
        """`on_abortable` is called with an error after which the transaction can only be aborted: waiting records
        will not be sent."""
        super().__init__(cluster, on_fatal)
        self._on_abortable = on_abortable
        self.transactional_id = cluster.config.text("transactional.id")
        self._timeout_ms = cluster.config.int("transaction.timeout.ms")
        self.state = State.UNINITIALIZED
        self._error: KafkaError | None = None
        self._is_owner = True  # False for a member of another producer's transaction
        self._is_begun = False  # whether the coordinator, or a broker, knows of this transaction
        # In version 1 the next transaction needs a new epoch if sequences are in doubt.
        self._needs_epoch_bump = False
        self._partitions: dict[TopicPartition, None] = {}
        self._pending_partitions: dict[TopicPartition, None] = {}
        self._adding_task: asyncio.Task[None] | None = None

    # For the sender

    def request_in_background(self) -> None:
        """Does nothing: the coordinator gives id and epoch, in `init`."""

    def may_send(self, queue: PartitionQueue) -> bool:
        if self.state not in _OPEN:
            return False
        sequences.apply_rewind(queue)
        if sequences.needs_new_epoch(queue) and queue.producer_id == self._id_and_epoch.producer_id:
            if queue.producer_epoch == self._id_and_epoch.epoch:
                self._blocked[queue] = None
                return False
            sequences.begin_epoch(queue, self._id_and_epoch)
        sequences.adopt(queue, self._id_and_epoch)
        if not sequences.may_send(queue):
            return False
        if self.is_transaction_v2:
            self._is_begun = True
            return True
        where = TopicPartition(queue.topic, queue.partition)
        if where in self._partitions:
            return True
        self._blocked[queue] = None
        self._pending_partitions[where] = None
        if self._adding_task is None:
            self._adding_task = asyncio.get_running_loop().create_task(self._add_partitions())
        return False

    def fence(self, error: KafkaError) -> None:
        self._to_fatal(error)

    @property
    def may_retry(self) -> bool:
        return self.state in _OPEN

    def batch_failed(self, error: KafkaError) -> None:
        self._needs_epoch_bump = True
        self._to_abortable(error)

    async def close(self) -> None:
        if self._adding_task is not None:
            self._adding_task.cancel()

    # For the application

    async def init(self, deadline: float) -> None:
        """Takes the transactional.id over."""
        if self.state is State.FATAL:
            self._raise()
        if self.state is not State.UNINITIALIZED:
            raise IllegalStateError(None, "transactions are initialized already")
        await self._init_producer_id(deadline, ProducerIdAndEpoch(-1, -1))
        self.state = State.READY

    def join(self, id_and_epoch: ProducerIdAndEpoch, *, is_version_2: bool) -> None:
        """Takes part in the open transaction of another producer, as that producer (see `shared_transaction`)."""
        if self.state is not State.UNINITIALIZED:
            raise IllegalStateError(None, "transactions are initialized already")
        self._id_and_epoch = id_and_epoch
        self._is_owner = False
        self.is_transaction_v2 = is_version_2
        self.state = State.READY
        self.begin()

    def expect_members(self) -> None:
        """Notes that others write in this transaction, so that it must be ended even if this producer writes
        nothing."""
        self._is_begun = True

    def begin(self) -> None:
        """Begins a transaction, of which the coordinator hears with its first record."""
        if self.state is State.FATAL:
            self._raise()
        if self.state is not State.READY:
            what = (
                "init_transactions comes first"
                if self.state is State.UNINITIALIZED
                else "one is open already"
            )
            raise IllegalStateError(None, f"a transaction cannot begin: {what}")
        self.state, self._error = State.IN_TRANSACTION, None
        self._is_begun = self._needs_epoch_bump = False
        self._partitions, self._pending_partitions = {}, {}

    async def send_offsets(self, offsets: Mapping[Any, Any], group: Any, deadline: float) -> None:
        """Commits a group's offsets with the transaction."""
        self.check_is_open()
        if not offsets:
            return
        group_id = group if isinstance(group, str) else group.group_id
        try:
            if not self.is_transaction_v2:
                request = add_offsets_request(self._name(), self._id_and_epoch, group_id)
                response = await self._call_coordinator(
                    TRANSACTION, self._name(), request, AddOffsetsToTxnResponse, deadline
                )
                self._check(response.error_code, f"group {group_id}")
            self._is_begun = True
            await self._commit_offsets(offsets, group, group_id, deadline)
        except KafkaError as error:
            raise self._note_failure(error) from error

    def check_is_open(self) -> None:
        """Raises if nothing may be added to the transaction any more."""
        self._check_can_commit()
        if self.state is State.COMMITTING:
            raise IllegalStateError(
                None,
                "the transaction is being committed",
                advice="await commit_transaction, then begin_transaction",
            )

    def _check_can_commit(self) -> None:
        if self.state in (State.FATAL, State.ABORTABLE):
            self._raise()
        if self.state not in _OPEN:
            raise IllegalStateError(None, "no transaction has begun", advice="begin_transaction comes first")

    def begin_commit(self) -> None:
        """Closes the transaction for new records; those that it has are still sent."""
        self._check_can_commit()
        self.state = State.COMMITTING

    def begin_abort(self) -> None:
        """Keeps the remaining records of the transaction from being sent."""
        if self.state is State.FATAL:
            self._raise()
        if self.state not in (*_OPEN, State.ABORTABLE):
            raise IllegalStateError(None, "no transaction has begun", advice="begin_transaction comes first")
        if self.state is State.ABORTABLE:
            assert self._error is not None
            self._on_abortable(self._error)
        self._to_abortable(
            TransactionAbortedError(
                None,
                "the transaction is being aborted",
                advice="await abort_transaction, then begin_transaction",
            )
        )

    @property
    def is_left_open(self) -> bool:
        """True if there is a transaction that nobody else will end, and that was not to be committed."""
        return self._is_owner and self.state in (State.IN_TRANSACTION, State.ABORTABLE)

    async def end(self, *, is_commit: bool, deadline: float) -> None:
        """Commits or aborts, once every record has its outcome. After a timeout it may be called again."""
        if is_commit:
            self._check_can_commit()
        if self._adding_task is not None:
            await asyncio.shield(self._adding_task)
        if self._is_begun:
            await self._end(is_commit, deadline)
        if self._needs_epoch_bump and not self.is_transaction_v2:
            await self._init_producer_id(deadline, self._id_and_epoch)
        self.state, self._error = State.READY, None
        self.on_change()

    # Requests to coordinators

    async def _end(self, is_commit: bool, deadline: float) -> None:
        request = end_request(self._name(), self._id_and_epoch, is_commit)
        try:
            response = await self._call_coordinator(
                TRANSACTION, self._name(), request, EndTxnResponse, deadline
            )
            self._check(response.error_code, "the end of a transaction")
        except KafkaTimeoutError:
            raise
        except KafkaError as error:
            if not is_commit and error.code in (
                ErrorCode.UNKNOWN_PRODUCER_ID,
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ):
                # The coordinator has forgotten the producer, and the transaction with it.
                self._needs_epoch_bump = True
                return
            raise self._note_failure(error) from error
        if self.is_transaction_v2 and response.producer_id >= 0:
            self._id_and_epoch = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        self._is_begun = False

    async def _init_producer_id(self, deadline: float, previous: ProducerIdAndEpoch) -> None:
        connection = await self._cluster.coordinators.connection(TRANSACTION, self._name(), deadline)
        self.is_transaction_v2 = connection.finalized_features.get(TRANSACTION_FEATURE, 0) >= 2
        request = init_request(self._name(), self._timeout_ms, previous)
        try:
            response = await self._call_coordinator(
                TRANSACTION, self._name(), request, InitProducerIdResponse, deadline
            )
            self._check(response.error_code, f"transactional.id {self._name()}")
        except KafkaError as error:
            if not error.retriable:
                self._to_fatal(error)
                self._raise()
            raise
        self._id_and_epoch = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        self._needs_epoch_bump = False
        self.on_change()

    async def _add_partitions(self) -> None:
        """Adds partitions to the transaction before records go there, until none is pending."""
        try:
            while self._pending_partitions and self.state in _OPEN:
                partitions, self._pending_partitions = list(self._pending_partitions), {}
                deadline = self._cluster.now() + self._timeout_ms / 1000
                request = add_partitions_request(self._name(), self._id_and_epoch, partitions)
                response = await self._call_coordinator(
                    TRANSACTION, self._name(), request, AddPartitionsToTxnResponse, deadline, partition_errors
                )
                code = first_error(partition_errors(response))
                self._check(code, "a partition of a transaction")
                self._partitions.update(dict.fromkeys(partitions))
                self._is_begun = True
        except KafkaError as error:
            self._note_failure(error)
        self._adding_task = None
        self.on_change()

    async def _commit_offsets(
        self, offsets: Mapping[Any, Any], group: Any, group_id: str, deadline: float
    ) -> None:
        request = txn_offset_commit_request(self._name(), self._id_and_epoch, group_id, group, offsets)
        response = await self._call_coordinator(
            GROUP,
            group_id,
            request,
            TxnOffsetCommitResponse,
            deadline,
            lambda response: [each.error_code for topic in response.topics for each in topic.partitions],
        )
        code = first_error([each.error_code for topic in response.topics for each in topic.partitions])
        if code in _GROUP_MOVED_ON:
            raise CommitFailedError(code, f"group {group_id} has moved on; the transaction must be aborted")
        self._check(code, f"offsets of group {group_id}")

    async def _call_coordinator(
        self,
        kind: int,
        key: str,
        request: Request,
        cls: type[R],
        deadline: float,
        codes: Callable[[Any], list[int]] | None = None,
    ) -> R:
        """Returns the response of a coordinator, and asks again while its error is retriable."""
        pause = self._cluster.backoff()
        versions = _V2_VERSIONS_MAX if self.is_transaction_v2 else _V1_VERSIONS_MAX
        while True:
            failure: KafkaError
            is_sent = False
            try:
                connection = await self._cluster.coordinators.connection(kind, key, deadline)
                version = connection.version(type(request), at_most=versions.get(request.API_KEY))
                is_sent = True
                response = await connection.call(request, cls, version=version)
                is_sent = False
                error_codes = [response.error_code] if codes is None else codes(response)  # type: ignore[attr-defined]
                code = first_error(error_codes)
                failure = error_for(code)
                if code == ErrorCode.NONE or not failure.retriable or code == ErrorCode.UNKNOWN_TOPIC_ID:
                    return response
                if code in COORDINATOR_MOVED:
                    self._cluster.coordinators.forget(kind, key)
            except KafkaTimeoutError as error:
                failure = error
            except KafkaError as error:
                if not error.retriable:
                    raise
                failure = error
                self._cluster.coordinators.forget(kind, key)
            if is_sent and not self.is_transaction_v2:
                # Without its response it may still arrive: in the next transaction, unless that has another epoch.
                self._needs_epoch_bump = True
            wait = pause.failed()
            if self._cluster.now() + wait >= deadline:
                raise KafkaTimeoutError(
                    None, f"the coordinator of {key} did not do it within max.block.ms: {failure}"
                )
            await asyncio.sleep(wait)

    # Failures

    def _name(self) -> str:
        assert self.transactional_id is not None
        return self.transactional_id

    def _check(self, code: int, what: str) -> None:
        if code != ErrorCode.NONE:
            raise error_for(code, what)

    def _note_failure(self, error: KafkaError) -> KafkaError:
        """Changes the state after an error within a transaction, which can be aborted or is lost; returns the error
        to raise."""
        if error.code in _FENCED or not (error.retriable or error.code in _ABORTABLE):
            self._to_fatal(error)
        else:
            self._to_abortable(error)
        return self._error or error

    def _to_abortable(self, error: KafkaError) -> None:
        if self.state in _OPEN:
            self.state, self._error = State.ABORTABLE, error
            self._on_abortable(error)

    def _to_fatal(self, error: KafkaError) -> None:
        if self.state is State.FATAL:
            return
        self.state = State.FATAL
        self._error = error if error.code not in _FENCED else ProducerFencedError(error.code, error.message)
        self._on_fatal(self._error)

    def _raise(self) -> None:
        assert self._error is not None
        raise self._error

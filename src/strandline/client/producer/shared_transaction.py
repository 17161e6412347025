"""One transaction of several producers: its owner begins and ends it, members write inside it from other processes.

    owner = TransactionOwner(..., transactional_id="job")        the ticket goes to the members
    await owner.init_transactions(); owner.begin_transaction(); ticket = owner.ticket
    member = TransactionMember(..., ticket=ticket)               elsewhere; sends, flushes, closes
    await owner.commit_transaction()                             when all members say that they are done

To brokers they are one producer, so the code that hands out tickets must keep these rules:
1. A partition has one member at most in a transaction: sequences of two would collide.
2. A ticket is good for one transaction, and each has an epoch of its own: members begin with sequence 0. A new
   owner is created for each transaction, for then `init_transactions` gives the next epoch whatever the cluster's
   version.
3. The transaction has at least one record when it ends: coordinators know of a transaction by its first record.
4. Only the owner ends the transaction. Brokers refuse a member of an ended one by its epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strandline.base.ids import ProducerIdAndEpoch
from strandline.client.errors import IllegalStateError
from strandline.client.producer.producer import Producer


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionTicket:
    """The values with which a member writes in a transaction; it may be pickled."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_version_2: bool


class TransactionOwner(Producer):
    """The producer that begins and ends the transaction."""

    @property
    def ticket(self) -> TransactionTicket:
        """The ticket with which members write into the transaction that is open."""
        transactions = self._transactional()
        transactions.check_is_open()
        transactions.expect_members()
        id_and_epoch = transactions.current
        return TransactionTicket(
            transactional_id=transactions.transactional_id or "",
            producer_id=id_and_epoch.producer_id,
            epoch=id_and_epoch.epoch,
            is_version_2=transactions.is_transaction_v2,
        )


class TransactionMember(Producer):
    """A producer that writes in its owner's transaction."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, *, ticket: TransactionTicket, **keywords: Any
    ) -> None:
        super().__init__(settings, **{**keywords, "transactional_id": ticket.transactional_id})
        self._ticket = ticket

    async def start(self) -> None:
        await super().start()
        ticket = self._ticket
        self._transactional().join(
            ProducerIdAndEpoch(ticket.producer_id, ticket.epoch), is_version_2=ticket.is_version_2
        )
        self._appender.refuse(None)

    async def init_transactions(self) -> None:
        raise _not_for_members("init_transactions")

    async def commit_transaction(self) -> None:
        raise _not_for_members("commit_transaction")

    async def abort_transaction(self) -> None:
        raise _not_for_members("abort_transaction")


def _not_for_members(call: str) -> IllegalStateError:
    return IllegalStateError(None, f"{call} is for the transaction's owner", advice="a member only writes")

"""What the machine of transactions plans: a change of one transactional id at most, and what its producer is told."""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.base.errors import ErrorCode
from strandline.base.planned import Planned
from strandline.transactions.transaction import Transaction


class NeedsProducerId(Exception):
    """No error: the decision takes a producer id that nobody has, which only the controller can give."""


class Identity(NamedTuple):
    producer_id: int
    epoch: int


_NOBODY: Final = Identity(-1, -1)


class TxnResponse(NamedTuple):
    code: int = ErrorCode.NONE
    identity: Identity = _NOBODY


def planned(
    change: Transaction | None = None, code: int = ErrorCode.NONE, identity: Identity = _NOBODY
) -> Planned[TxnResponse]:
    """A plan with this change to be written, or with none."""
    return Planned(records=() if change is None else (change,), response=TxnResponse(code, identity))

"""The plans of the transaction coordinator: a change of one transactional id at most, and the producer's response."""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.base.errors import ErrorCode
from strandline.base.ids import ProducerIdAndEpoch
from strandline.base.planned import Planned
from strandline.transactions.transaction import Transaction


class NeedsProducerId(Exception):
    """Says that the decision needs a new producer id, which only the controller can give. It is not an error."""


_NOBODY: Final = ProducerIdAndEpoch(-1, -1)


class TxnResponse(NamedTuple):
    code: int = ErrorCode.NONE
    identity: ProducerIdAndEpoch = _NOBODY


def planned(
    change: Transaction | None = None, code: int = ErrorCode.NONE, identity: ProducerIdAndEpoch = _NOBODY
) -> Planned[TxnResponse]:
    """Returns a plan that writes this change, or nothing."""
    return Planned(records=() if change is None else (change,), response=TxnResponse(code, identity))

"""What the machine of transactions decides."""

from __future__ import annotations

from typing import NamedTuple

from strandline.base.errors import ErrorCode
from strandline.transactions.transaction import Transaction


class NeedsProducerId(Exception):
    """No error: the decision takes a producer id that nobody has, which only the controller can give."""


class Identity(NamedTuple):
    producer_id: int
    epoch: int


class Planned(NamedTuple):
    change: Transaction | None = None  # to be written, then applied
    code: int = ErrorCode.NONE  # of the answer, once that is committed
    identity: Identity = Identity(-1, -1)

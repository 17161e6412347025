"""A transaction that was aborted in one partition: the row of a transaction index, which storage keeps."""

from __future__ import annotations

from typing import NamedTuple


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # the offset of the marker
    last_stable_offset: (
        int  # as of the end of this transaction: the search for aborted transactions may end there
    )

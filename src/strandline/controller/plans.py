"""What a plan is: the records to append and the answer to give once they are committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from strandline.wire.schema import Message

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Generic[R]):
    records: tuple[Message, ...]
    response: R

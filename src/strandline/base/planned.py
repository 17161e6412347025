"""The result of a plan of any machine: the records to append, and the response for when they are committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Generic[R]):
    records: tuple[Any, ...]  # in the form that the machine's `apply` expects
    response: R

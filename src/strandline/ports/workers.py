"""Blocking work off the loop: immutable values in, a value out, never live state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Workers(Protocol):
    def run(self, work: Callable[..., T], *values: object) -> Awaitable[T]: ...

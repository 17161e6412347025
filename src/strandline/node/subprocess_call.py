"""One call in another process: for work that would hold up the threads of this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from strandline.node.subprocess_worker import SubprocessWalk
from strandline.ports.workers import Workers

T = TypeVar("T")


def call_in_subprocess(work: Callable[..., T], *values: object) -> T:
    """Returns the value of `work(*values)`, computed in a child process that ends with it. It blocks, and raises the
    error of the work, or WorkLost."""
    walk: SubprocessWalk[T] = SubprocessWalk(cast(Workers, None), _once, (work, values))
    try:
        return cast(T, walk.step())
    finally:
        walk.close()


def _once(work: Callable[..., T], values: tuple[Any, ...]) -> Iterator[T]:
    yield work(*values)

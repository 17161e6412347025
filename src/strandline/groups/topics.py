"""The cluster's topics as a group coordinator sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol


class Topics(Protocol):
    @property
    def version(self) -> int:
        """Another number whenever anything about topics changed."""
        ...

    def names(self) -> Iterable[str]: ...

    def topic_id(self, name: str) -> bytes | None: ...

    def name(self, topic_id: bytes) -> str:
        """Empty if there is no such topic."""
        ...

    def partition_count(self, name: str) -> int:
        """0 if there is no such topic."""
        ...


class DescribableTopics:
    """The topics that somebody may describe: a regular expression of theirs finds no others."""

    def __init__(self, topics: Topics, may_describe: Callable[[str], bool]) -> None:
        self._may_describe = may_describe
        self._topics = topics
        self.topic_id = topics.topic_id
        self.name = topics.name
        self.partition_count = topics.partition_count

    @property
    def version(self) -> int:
        return self._topics.version

    def names(self) -> Iterable[str]:
        return (name for name in self._topics.names() if self._may_describe(name))

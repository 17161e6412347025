"""The cluster's topics as a group coordinator sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol


class Topics(Protocol):
    @property
    def version(self) -> int:
        """A number that changes with every change of topics."""
        ...

    def names(self) -> Iterable[str]: ...

    def topic_id(self, name: str) -> bytes | None: ...

    def name(self, topic_id: bytes) -> str:
        """Returns the topic's name; empty if there is no such topic."""
        ...

    def partition_count(self, name: str) -> int:
        """Returns the number of partitions; 0 if there is no such topic."""
        ...


class DescribableTopics:
    """The topics that a client may describe: its regular expressions match no others."""

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

"""The methods that every broker of `strandline.testing` has: produce, consume, expect, create topics, wait.

Brokers in processes have blocking methods, which work in any code; on a loop they block the loop. An embedded broker
has coroutines.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from strandline.client.arguments import ConfigValue
    from strandline.client.consumer.record_decoder import ConsumerRecord
    from strandline.client.producer.batch import RecordMetadata

T = TypeVar("T")

_numbers = count(1)


def topic_name(given: str | None) -> str:
    """Returns the given name, or a new one if none is given."""
    return f"topic-{next(_numbers)}" if given is None else given


def _wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of a coroutine, which runs on the thread that blocking clients share."""
    from strandline.client.world import loop_thread

    result: T = loop_thread().run(work)
    return result


class BlockingCalls:
    """The methods of brokers in processes of their own, and of clusters."""

    @property
    def client_settings(self) -> dict[str, str]:
        raise NotImplementedError

    @property
    def _broker_count(self) -> int:
        return 1

    def create_topic(
        self,
        name: str | None = None,
        *,
        partitions: int = 1,
        replication_factor: int = -1,
        configs: Mapping[str, ConfigValue] | None = None,
    ) -> str:
        """Creates a topic, and returns its name when every partition has a leader and all replicas are in sync."""
        from strandline.testing import records

        return _wait_for(
            records.create_topic(
                self.client_settings,
                topic_name(name),
                partitions=partitions,
                replication_factor=replication_factor,
                configs=configs,
            )
        )

    def produce(self, topic: str, new: Iterable[Any]) -> list[RecordMetadata]:
        """Writes records with acks=all; returns their partitions and offsets.

        Each is a value, a pair of key and value, or a `NewRecord`; a value is bytes, text, None, or a dict or a list,
        which becomes JSON.
        """
        from strandline.testing import records

        return _wait_for(records.produce(self.client_settings, topic, new))

    def consume(self, topic: str, count: int | None = None, *, within: float = 10.0) -> list[ConsumerRecord]:
        """Returns the committed records of a topic from its beginning: all that are there, or the first `count`.

        It waits for `count` records for `within` seconds; TimeoutError says which ones were there. It joins no group.
        """
        from strandline.testing import records

        return _wait_for(records.consume(self.client_settings, topic, count, within=within))

    def expect(
        self,
        topic: str,
        expected: Iterable[Any],
        *,
        within: float = 5.0,
        quiet: float = 0.0,
        in_order: bool | None = None,
    ) -> list[ConsumerRecord]:
        """Waits until a topic holds exactly these committed records; AssertionError shows the difference.

        Each is a value, a pair of key and value, or a function of the record; a dict or a list is compared as JSON.
        Records of one partition are compared in their order, those of several in any order, unless `in_order` says
        otherwise. For `quiet` seconds after that no further record may come.
        """
        from strandline.testing import records

        return _wait_for(
            records.expect(
                self.client_settings, topic, expected, within=within, quiet=quiet, in_order=in_order
            )
        )

    def wait_until_in_sync(self, *, within: float = 30.0, topics: Iterable[str] | None = None) -> None:
        """Waits until every broker is there and every partition has all of its replicas in sync.

        TimeoutError names the brokers and partitions that are missing. With `topics` only their partitions count.
        """
        from strandline.testing import records

        _wait_for(
            records.wait_until_in_sync(
                self.client_settings, within=within, topics=topics, brokers=self._broker_count
            )
        )

    def leader_id(self, topic: str, partition: int = 0) -> int:
        """Waits for a leader of a partition, and returns its broker id. `Cluster.leader_of` returns the node itself."""
        from strandline.testing import records

        return _wait_for(records.leader_of(self.client_settings, topic, partition))


class AsyncCalls:
    """The same methods as coroutines, for a broker that may be on the loop of the test itself."""

    __slots__ = ()

    @property
    def client_settings(self) -> dict[str, str]:
        raise NotImplementedError

    async def create_topic(
        self,
        name: str | None = None,
        *,
        partitions: int = 1,
        configs: Mapping[str, ConfigValue] | None = None,
    ) -> str:
        """Creates a topic and returns its name when it can be used."""
        from strandline.testing import records

        return await records.create_topic(
            self.client_settings, topic_name(name), partitions=partitions, configs=configs
        )

    async def produce(self, topic: str, new: Iterable[Any]) -> list[RecordMetadata]:
        """Writes records with acks=all; returns their partitions and offsets. See `BlockingCalls.produce`."""
        from strandline.testing import records

        return await records.produce(self.client_settings, topic, new)

    async def consume(
        self, topic: str, count: int | None = None, *, within: float = 10.0
    ) -> list[ConsumerRecord]:
        """Returns the committed records of a topic from its beginning. See `BlockingCalls.consume`."""
        from strandline.testing import records

        return await records.consume(self.client_settings, topic, count, within=within)

    async def expect(
        self,
        topic: str,
        expected: Iterable[Any],
        *,
        within: float = 5.0,
        quiet: float = 0.0,
        in_order: bool | None = None,
    ) -> list[ConsumerRecord]:
        """Waits until a topic holds exactly these committed records. See `BlockingCalls.expect`."""
        from strandline.testing import records

        return await records.expect(
            self.client_settings, topic, expected, within=within, quiet=quiet, in_order=in_order
        )

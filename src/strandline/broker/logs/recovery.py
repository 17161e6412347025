"""Logs at the beginning and at the end: recovery after an unclean end, and what makes an end a clean one.

After an unclean end every log is checked and repaired while the broker already serves. A log is opened when it is first
used, and that repairs it; whoever asks for one does not wait for the others. Here are the rest, in each directory
`num.recovery.threads.per.data.dir` at a time, and how far it has come is said. As many are synced at a time at a stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from strandline.base.errors import KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.replication.replica import Replica
from strandline.storage.directory import LogDirectory

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

# Lines about progress, of one directory, beside the first and the last.
_LINES_MAX: Final = 10


def _threads(broker: Broker) -> int:
    threads = broker.configs.broker_value("num.recovery.threads.per.data.dir")
    assert isinstance(threads, int)
    return threads


async def close_logs(broker: Broker) -> bool:
    """Closes and syncs every log, some at a time; whether all of it worked."""
    left = iter(broker.replicas.all_open())
    failed: list[Replica] = []

    async def close_some() -> None:
        for replica in left:
            if replica.directory.offline_because is not None:
                continue
            try:
                replica.log.close()
                await broker.flush(replica)
            except (OSError, KafkaError) as error:
                broker.events.error("closing a log", partition=replica.partition, error=error)
                failed.append(replica)

    threads = _threads(broker) * len(broker.replicas.directories)
    for task in [asyncio.get_running_loop().create_task(close_some()) for _ in range(threads)]:
        await task
    return not failed


class Recovery:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def start(self) -> None:
        for directory in self._broker.replicas.directories:
            partitions = self._broker.replicas.partitions_in(directory)
            if not directory.is_clean and directory.offline_because is None and partitions:
                _DirectoryRecovery(self._broker, directory, partitions).start()


class _DirectoryRecovery:
    def __init__(self, broker: Broker, directory: LogDirectory, partitions: list[TopicPartition]) -> None:
        self._broker = broker
        self._directory = directory
        self._left: Iterator[TopicPartition] = iter(partitions)
        self._count = len(partitions)
        self._done = 0
        self._started_at = broker.clock.monotonic()

    def start(self) -> None:
        broker = self._broker
        threads = _threads(broker)
        broker.events.info(
            "recovering",
            directory=self._directory.path,
            logs=self._count,
            threads=threads,
            because="unclean end",
        )
        for _ in range(threads):
            broker.tasks.start(self._recover())

    async def _recover(self) -> None:
        for partition in self._left:
            if self._directory.offline_because is not None:
                return
            try:
                await self._broker.replicas.open(*partition)
            except KafkaError as error:
                self._broker.events.warn("log not recovered", partition=partition, error=error)
            self._done += 1
            self._say()

    def _say(self) -> None:
        step = max(self._count // _LINES_MAX, 1)
        if self._done == self._count:
            seconds = round(self._broker.clock.monotonic() - self._started_at, 1)
            self._broker.events.info(
                "recovered", directory=self._directory.path, logs=self._count, seconds=seconds
            )
        elif self._count > _LINES_MAX and self._done % step == 0:
            self._broker.events.info(
                "recovering", directory=self._directory.path, logs=self._count, done=self._done
            )

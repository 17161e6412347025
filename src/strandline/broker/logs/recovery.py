"""Logs at the start and at the stop: recovery after an unclean shutdown, and closing for a clean one.

After an unclean shutdown every log is checked and repaired while the broker already serves. A log is repaired when it
is opened on its first use, so a request does not wait for other logs. This module opens the rest, in each directory
`num.recovery.threads.per.data.dir` at a time, and logs the progress. At a stop as many logs are synced at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from strandline.base.errors import KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.flusher import LogFlusher
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.storage.directory import LogDirectory

# The number of lines about the progress of one directory, besides the first and the last.
_LINES_MAX: Final = 10
# The logs that are closed in one iteration of the loop, and then synced together.
_CLOSED_AT_ONCE: Final = 64
_SYNCED_TOGETHER: Final = 1024
_THREADS: Final = "num.recovery.threads.per.data.dir"


async def close_logs(node: NodeContext, replicas: Replicas, flusher: LogFlusher) -> bool:
    """Closes and syncs every log, some at a time; returns True if all succeeded."""
    is_clean = True

    async def close_some(logs: Iterator[list[Replica]]) -> None:
        nonlocal is_clean
        for group in logs:
            closed = []
            for number, replica in enumerate(group):
                if number % _CLOSED_AT_ONCE == _CLOSED_AT_ONCE - 1:
                    await asyncio.sleep(0)
                try:
                    replica.log.close()
                    closed.append(replica)
                except OSError as error:
                    node.events.error("closing a log", partition=replica.partition, error=error)
                    is_clean = False
            try:
                if closed:
                    await flusher.flush_together(closed)
            except KafkaError as error:
                node.events.error("closing logs", partition=closed[0].partition, error=error)
                is_clean = False

    work = []
    for directory in replicas.directories:
        held = [each for each in replicas.all_open() if each.directory is directory]
        if directory.offline_because is None:
            groups = iter([held[at : at + _SYNCED_TOGETHER] for at in range(0, len(held), _SYNCED_TOGETHER)])
            work += [close_some(groups) for _ in range(node.int_config(_THREADS))]
    await asyncio.gather(*work)
    return is_clean


def start_recovery(node: NodeContext, replicas: Replicas) -> None:
    """Recovers the logs of every directory after an unclean shutdown, in the background."""
    for directory in replicas.directories:
        partitions = replicas.partitions_in(directory)
        if not directory.is_clean and directory.offline_because is None and partitions:
            _DirectoryRecovery(node, replicas, directory, partitions).start()


class _DirectoryRecovery:
    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        directory: LogDirectory,
        partitions: list[TopicPartition],
    ) -> None:
        self._node = node
        self._replicas = replicas
        self._directory = directory
        self._left: Iterator[TopicPartition] = iter(partitions)
        self._count = len(partitions)
        self._done = 0
        self._started_at = node.clock.monotonic()

    def start(self) -> None:
        threads = self._node.int_config(_THREADS)
        self._node.events.info(
            "recovering",
            directory=self._directory.path,
            logs=self._count,
            threads=threads,
            because="unclean end",
        )
        for _ in range(threads):
            self._node.tasks.start(self._recover())

    async def _recover(self) -> None:
        for partition in self._left:
            if self._directory.offline_because is not None:
                return
            try:
                await self._replicas.open(*partition)
            except KafkaError as error:
                self._node.events.warn("log not recovered", partition=partition, error=error)
            self._done += 1
            self._say()

    def _say(self) -> None:
        step = max(self._count // _LINES_MAX, 1)
        if self._done == self._count:
            seconds = round(self._node.clock.monotonic() - self._started_at, 1)
            self._node.events.info(
                "recovered", directory=self._directory.path, logs=self._count, seconds=seconds
            )
        elif self._count > _LINES_MAX and self._done % step == 0:
            self._node.events.info(
                "recovering", directory=self._directory.path, logs=self._count, done=self._done
            )

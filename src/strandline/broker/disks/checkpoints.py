"""Writes the checkpoints of log directories, one at a time.

Two writers of one file would remove each other's temporary file, and an older state could replace a newer one. So each
waits for its turn, takes the state of that moment, and is not interrupted when its caller is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.base.ids import TopicPartition
from strandline.ports.disk import Disk
from strandline.ports.workers import Workers
from strandline.storage.directory import LogDirectory


class CheckpointWriter:
    def __init__(self, disk: Disk, workers: Workers) -> None:
        self._disk = disk
        self._workers = workers
        self._turn = asyncio.Lock()
        self._forgetting = asyncio.Lock()

    async def write(self, render: Callable[[], tuple[str, bytes]]) -> None:
        """Writes the file whose path and contents `render` returns; raises OSError if that fails."""
        writing = asyncio.get_running_loop().create_task(self._write(render))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(writing)

    async def save_forgotten(self, directory: LogDirectory, partition: TopicPartition) -> None:
        """Removes the entries of an earlier partition of that name from the checkpoints; raises OSError if that fails.

        After a crash they would be taken for those of the new partition: above all a log start, which hides records.
        """
        # A caller that waits here finds its own partition saved too: none of them is opened meanwhile.
        async with self._forgetting:
            if partition not in directory.forgotten:
                return
            saved = frozenset(directory.forgotten)
            for render in directory.renders():
                await self.write(render)
            directory.forgotten -= saved

    async def _write(self, render: Callable[[], tuple[str, bytes]]) -> None:
        async with self._turn:
            path, contents = render()
            await self._workers.run(self._disk.write_whole, path, contents)

"""Removes the files of deleted segments and partitions, some time after the deletion.

Responses may still be sent from a file, so it stays for `file.delete.delay.ms`.
"""

from __future__ import annotations

from collections.abc import Callable

from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replicas import Replicas
from strandline.storage.files import FileTable


class DelayedRemoval:
    def __init__(self, node: NodeContext, replicas: Replicas, files: FileTable) -> None:
        self._node = node
        self._replicas = replicas
        self._files = files
        self._doomed_files: list[tuple[int, str]] = []

    def remove_later(self, paths: list[str], delay_ms: int) -> None:
        now = self._node.clock.wall_ms()
        self._doomed_files += [(now + delay_ms, path) for path in paths]

    async def remove_due(self) -> None:
        """Removes the files whose delay is over."""
        now = self._node.clock.wall_ms()
        due = [path for when, path in self._doomed_files if when <= now]
        self._doomed_files = [(when, path) for when, path in self._doomed_files if when > now]
        for path in due:
            # A response may have been sent from it: an open file would take up its room.
            self._files.forget(path)
            await self._remove(self._node.disk.remove, path)
        directories = self._replicas.doomed_directories
        due = [path for when, path in directories if when <= now]
        self._replicas.doomed_directories = [(when, path) for when, path in directories if when > now]
        for path in due:
            self._files.forget_in(path)
            if self._node.disk.exists(path):
                await self._remove(self._node.disk.remove_directory, path)

    async def _remove(self, remove: Callable[[str], None], path: str) -> None:
        """Removes one file or directory. A failure does not stop the others, and the next start tries again."""
        try:
            await self._node.workers.run(remove, path)
        except OSError as error:
            self._node.events.warn("not removed", path=path, error=error)

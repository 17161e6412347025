"""The data directory of a cluster whose nodes run on this machine; the process that runs them locks it.

1. Nothing is created, moved or formatted before the directory's contents allow it.
2. The lock is held first. The contents are read again under it, because they may have changed meanwhile.
3. Node directories of 0.1.0's layout are renamed one after the other. Each is in one place at any time, so an
   interrupted move can be continued. No node is moved while a process uses it.
4. A new cluster is formatted beside its place and renamed: a data directory has all of its nodes or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from strandline.ports.disk import Disk
from strandline.storage import names
from strandline.storage.data_directory import (
    NODE_LOG,
    NODE_SETTINGS,
    NODES,
    NODES_IN_PREPARATION,
    DataDirectory,
    Move,
    contents_of,
    plan_cluster,
    user_of,
)
from strandline.storage.directory import take_lock

FormatNode = Callable[[int, str], None]


class ClusterHome:
    def __init__(self, disk: Disk, path: str, count: int) -> None:
        """Reads the directory and changes nothing; raises UnusableDirectory if it is not for a cluster of `count`
        nodes."""
        self._disk = disk
        self._count = count
        self.path = path
        directory = contents_of(disk, path)
        self.is_new = plan_cluster(directory, count, user_of(disk, directory)).cluster_id is None
        self._is_locked = False

    def take(self, new_cluster_id: str, format_node: FormatNode) -> str:
        """Locks the directory until `release` and puts every node in its place; returns the id of its cluster.

        A new cluster gets `new_cluster_id`, and `format_node` formats each node's log directory, by number and path.
        """
        self._disk.make_directory(self.path)
        take_lock(self._disk, self.path)
        self._is_locked = True
        try:
            directory = contents_of(self._disk, self.path)
            plan = plan_cluster(directory, self._count, user=None)
            self._move(directory, plan.moves)
            if plan.cluster_id is None:
                self._format(format_node)
            return plan.cluster_id or new_cluster_id
        except BaseException:
            self.release()
            raise

    def _move(self, directory: DataDirectory, moves: Sequence[Move]) -> None:
        with ExitStack() as locks:
            for node in directory.all_nodes:
                take_lock(self._disk, node.path)
                locks.callback(self._disk.unlock, f"{node.path}/{names.LOCK}")
            if not moves:
                return
            self._disk.make_directory(f"{self.path}/{NODES}")
            self._disk.sync_directory(self.path)
            for move in moves:
                self._rename(move)
            # The new names of the nodes are synced before the old ones are removed.
            self._disk.sync_directory(f"{self.path}/{NODES}")
            self._disk.sync_directory(self.path)

    def _rename(self, move: Move) -> None:
        """Renames a node's files and, last, its log directory: while that has its old name, a start looks for the files
        beside it."""
        for suffix in (NODE_SETTINGS, NODE_LOG):
            if self._disk.exists(move.old + suffix):
                self._disk.rename(move.old + suffix, move.new + suffix)
        self._disk.rename(move.old, move.new)

    def _format(self, format_node: FormatNode) -> None:
        temporary = f"{self.path}/{NODES_IN_PREPARATION}"
        # These nodes are from a start that was interrupted, and have never run.
        with suppress(FileNotFoundError):
            self._disk.remove_directory(temporary)
        try:
            for node_id in range(1, self._count + 1):
                format_node(node_id, f"{temporary}/{node_id}")
            self._disk.rename(temporary, f"{self.path}/{NODES}")
        except BaseException:
            with suppress(OSError):
                self._disk.remove_directory(temporary)
            raise
        self._disk.sync_directory(self.path)

    def release(self) -> None:
        if self._is_locked:
            self._is_locked = False
            self._disk.unlock(f"{self.path}/{names.LOCK}")

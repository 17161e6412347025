"""The data directory of a cluster whose nodes run on this machine, taken by the process that runs them.

1. Nothing is created, moved or formatted before the directory's contents allow it.
2. The lock is held first. The contents are read again under it, because they may have changed meanwhile.
3. Nodes of 0.1.0's layout are renamed one after the other; each of them is in one place at any time, so a move that was
   interrupted goes on. No node is moved while a process uses it.
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
        """Looks at the directory and leaves it as it is; UnusableDirectory if it is not for a cluster of `count`."""
        self._disk = disk
        self._count = count
        self.path = path
        found = contents_of(disk, path)
        self.is_new = plan_cluster(found, count, user_of(disk, found)).cluster_id is None
        self._is_locked = False

    def take(self, new_cluster_id: str, format_node: FormatNode) -> str:
        """Takes the directory until `release`, with every node at its place; the id of the cluster that it holds.

        A new cluster gets `new_cluster_id`, and `format_node` formats each node's log directory, by number and path.
        """
        self._disk.make_directory(self.path)
        take_lock(self._disk, self.path)
        self._is_locked = True
        try:
            found = contents_of(self._disk, self.path)
            plan = plan_cluster(found, self._count, user=None)
            self._move(found, plan.moves)
            if plan.cluster_id is None:
                self._format(format_node)
            return plan.cluster_id or new_cluster_id
        except BaseException:
            self.release()
            raise

    def _move(self, found: DataDirectory, moves: Sequence[Move]) -> None:
        with ExitStack() as locks:
            for node in found.all_nodes:
                take_lock(self._disk, node.path)
                locks.callback(self._disk.unlock, f"{node.path}/{names.LOCK}")
            if not moves:
                return
            self._disk.make_directory(f"{self.path}/{NODES}")
            self._disk.sync_directory(self.path)
            for move in moves:
                self._rename(move)
            # The nodes' new names are on the device before their old ones go.
            self._disk.sync_directory(f"{self.path}/{NODES}")
            self._disk.sync_directory(self.path)

    def _rename(self, move: Move) -> None:
        """Renames the log directory last: as long as it has its old name, the files beside it are looked for."""
        for suffix in (NODE_SETTINGS, NODE_LOG):
            if self._disk.exists(move.old + suffix):
                self._disk.rename(move.old + suffix, move.new + suffix)
        self._disk.rename(move.old, move.new)

    def _format(self, format_node: FormatNode) -> None:
        temporary = f"{self.path}/{NODES_IN_PREPARATION}"
        # Nodes of a start that was interrupted have never run.
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

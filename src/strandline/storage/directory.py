"""A log directory: its identity, its partitions, and their checkpoints.

`meta.properties` says which node and cluster the directory belongs to. Four checkpoints hold an offset of each
partition: its recovery point, its high watermark, its log start, and the offset up to which it is compacted. They are
in memory too, so that a partition that is never opened keeps its entries. A marker file says that the last shutdown was
clean.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, NamedTuple

from strandline.base.ids import TopicPartition, parse_uuid, uuid_text
from strandline.ports.disk import Disk
from strandline.storage import checkpoints, names
from strandline.storage.checkpoints import MalformedCheckpoint

_META_VERSION: Final = "1"


# The id of a directory that cannot be read.
NO_ID: Final = bytes(16)


class UnusableDirectory(Exception):
    """A log directory that this node must not use; the text says why and what to do."""


class UnreadableDirectory(UnusableDirectory):
    """A log directory that cannot be read from its disk."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(f"{path} cannot be read: {error}")
        self.error = error


def take_lock(disk: Disk, path: str) -> None:
    """Takes the lock of a directory for this process; raises UnusableDirectory if another process holds it."""
    lock = f"{path}/{names.LOCK}"
    if not disk.lock(lock):
        user = holder_text(disk.lock_holder(lock))
        raise UnusableDirectory(f"{path} is in use by {user}; stop it or choose another directory")


def holder_text(process_id: int | None) -> str:
    """Returns the holder of a lock in words, from the result of `Disk.lock_holder`."""
    return f"process {process_id}" if process_id else "another process"


def format_directory(disk: Disk, path: str, *, cluster_id: str, node_id: int, directory_id: bytes) -> None:
    disk.make_directory(path)
    properties = {
        "version": _META_VERSION,
        "cluster.id": cluster_id,
        "node.id": str(node_id),
        "directory.id": uuid_text(directory_id),
    }
    disk.write_whole(f"{path}/{names.META_PROPERTIES}", checkpoints.render_properties(properties))
    disk.sync_directory(names.directory_of(path))


def is_formatted(disk: Disk, path: str) -> bool:
    """Returns True if the directory has a meta.properties; raises UnreadableDirectory if it cannot be read."""
    try:
        disk.read(f"{path}/{names.META_PROPERTIES}")
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UnreadableDirectory(path, error) from error
    return True


def is_unformatted(disk: Disk, path: str) -> bool:
    """Returns True if the directory has never been used. One that cannot be read counts as used: a node can often do
    without it."""
    try:
        return not is_formatted(disk, path)
    except UnreadableDirectory:
        return False


class DirectoryIdentity(NamedTuple):
    cluster_id: str
    directory_id: bytes


def identity_of(disk: Disk, path: str, node_id: int) -> DirectoryIdentity:
    """Returns the contents of meta.properties; raises UnusableDirectory if they cannot be used or are another
    node's."""
    try:
        meta = checkpoints.parse_properties(disk.read(f"{path}/{names.META_PROPERTIES}"))
        if meta.get("node.id") != str(node_id):
            raise UnusableDirectory(
                f"{path} belongs to node {meta.get('node.id')}, and this is node {node_id}: choose another directory"
            )
        return DirectoryIdentity(meta["cluster.id"], parse_uuid(meta["directory.id"]))
    except OSError as error:
        raise UnreadableDirectory(path, error) from error
    except (KeyError, ValueError) as error:
        raise UnusableDirectory(f"{path}/{names.META_PROPERTIES} cannot be used: {error!r}") from error


class LogDirectory:
    def __init__(self, disk: Disk, path: str, node_id: int) -> None:
        """Takes the directory for this node.

        Raises UnusableDirectory if it is in use or belongs to another node. One that cannot be read is offline from the
        beginning.
        """
        self._disk = disk
        self.path = path
        self.offline_because: str | None = None
        self.notes: list[str] = []
        self.cluster_id, self.directory_id = "", NO_ID
        self.recovery_points: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.log_starts: dict[TopicPartition, int] = {}
        self.cleaned_offsets: dict[TopicPartition, int] = {}
        # Partitions whose entries are gone from memory and may still be on disk: a partition of the same name must not
        # inherit them.
        self.forgotten: set[TopicPartition] = set()
        self.clean_epoch: int | None = None
        self._is_locked = False
        try:
            self._take(node_id)
        except (OSError, UnreadableDirectory) as error:
            self.offline_because = str(error)
            self.directory_id = NO_ID

    def _take(self, node_id: int) -> None:
        take_lock(self._disk, self.path)
        self._is_locked = True
        try:
            self.cluster_id, self.directory_id = identity_of(self._disk, self.path, node_id)
            self.recovery_points = self._load(names.RECOVERY_POINTS)
            self.high_watermarks = self._load(names.HIGH_WATERMARKS)
            self.log_starts = self._load(names.LOG_STARTS)
            self.cleaned_offsets = self._load(names.CLEANED_OFFSETS)
            self.clean_epoch = self._take_clean_marker()
        except (OSError, UnusableDirectory):
            self.release()
            raise

    @property
    def is_clean(self) -> bool:
        return self.clean_epoch is not None

    def _load(self, name: str) -> dict[TopicPartition, int]:
        path = f"{self.path}/{name}"
        if not self._disk.exists(path):
            return {}
        try:
            return checkpoints.parse_offsets(self._disk.read(path))
        except MalformedCheckpoint as error:
            self.notes.append(f"{path}: {error}; ignored, because its contents are found out again")
            return {}

    def _take_clean_marker(self) -> int | None:
        """Returns the broker epoch of a clean shutdown, or None, and removes the marker."""
        path = f"{self.path}/{names.CLEAN_SHUTDOWN}"
        if not self._disk.exists(path):
            return None
        try:
            epoch = int(json.loads(self._disk.read(path) or b"{}").get("brokerEpoch", -1))
        except (ValueError, AttributeError):
            epoch = -1
        self._disk.remove(path)
        # If the removal did not survive a power cut, the next start would take an unclean shutdown for a clean one.
        self._disk.sync_directory(self.path)
        return epoch

    def mark_clean(self, broker_epoch: int) -> None:
        """Writes the marker of a clean shutdown, as its last step."""
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
        self._disk.write_whole(f"{self.path}/{names.CLEAN_SHUTDOWN}", content)

    def partitions(self) -> dict[TopicPartition, str]:
        """Returns the partitions that have a directory here, without the remains of deleted ones."""
        found = {}
        for name in self._disk.names(self.path):
            if name.endswith((names.DELETED_DIRECTORY, names.STRAY_DIRECTORY, names.FUTURE_DIRECTORY)):
                continue
            partition = names.parse_partition_directory(name)
            if partition is not None and self._disk.exists(f"{self.path}/{name}/{names.PARTITION_METADATA}"):
                found[partition] = f"{self.path}/{name}"
        return found

    def deleted_directories(self) -> list[str]:
        return [
            f"{self.path}/{name}"
            for name in self._disk.names(self.path)
            if name.endswith(names.DELETED_DIRECTORY)
        ]

    def future_directories(self) -> list[str]:
        """Returns the copies that an unfinished move between log directories has left."""
        return [
            f"{self.path}/{name}"
            for name in self._disk.names(self.path)
            if name.endswith(names.FUTURE_DIRECTORY)
        ]

    def topic_id_of(self, directory: str) -> bytes | None:
        try:
            return checkpoints.parse_partition_metadata(
                self._disk.read(f"{directory}/{names.PARTITION_METADATA}")
            )
        except (OSError, ValueError):
            return None

    def path_of(self, partition: TopicPartition) -> str:
        return f"{self.path}/{names.partition_directory(partition)}"

    def create_partition(self, partition: TopicPartition, topic_id: bytes) -> str:
        return self._create(self.path_of(partition), topic_id)

    def create_future(self, partition: TopicPartition, topic_id: bytes, unique: str) -> str:
        """Creates a directory for a copy that is to replace the partition; returns its path."""
        return self._create(f"{self.path}/{names.future_directory(partition, unique)}", topic_id)

    def _create(self, directory: str, topic_id: bytes) -> str:
        self._disk.make_directory(directory)
        self._disk.write_whole(
            f"{directory}/{names.PARTITION_METADATA}",
            checkpoints.render_partition_metadata(topic_id),
            sync=False,
        )
        return directory

    def set_aside(self, partition: TopicPartition, directory: str, unique: str) -> str:
        """Renames a deleted partition's directory; returns the new path, which is to be removed after a delay."""
        return self._set_aside(partition, directory, names.deleted_directory(partition, unique))

    def set_stray(self, partition: TopicPartition, directory: str, unique: str) -> str:
        """Renames a partition's directory that belongs to no topic and that no request has deleted: it stays, as a
        stray."""
        return self._set_aside(partition, directory, names.stray_directory(partition, unique))

    def _set_aside(self, partition: TopicPartition, directory: str, name: str) -> str:
        self._disk.rename(directory, f"{self.path}/{name}")
        self.forget(partition)
        return f"{self.path}/{name}"

    def forget(self, partition: TopicPartition) -> None:
        for offsets in (self.recovery_points, self.high_watermarks, self.log_starts, self.cleaned_offsets):
            if offsets.pop(partition, None) is not None:
                self.forgotten.add(partition)

    # Path and contents of each checkpoint, by the present state.

    def renders(self) -> tuple[Callable[[], tuple[str, bytes]], ...]:
        return (
            self.render_recovery_points,
            self.render_high_watermarks,
            self.render_log_starts,
            self.render_cleaned_offsets,
        )

    def render_recovery_points(self) -> tuple[str, bytes]:
        return f"{self.path}/{names.RECOVERY_POINTS}", checkpoints.render_offsets(self.recovery_points)

    def render_high_watermarks(self) -> tuple[str, bytes]:
        return f"{self.path}/{names.HIGH_WATERMARKS}", checkpoints.render_offsets(self.high_watermarks)

    def render_log_starts(self) -> tuple[str, bytes]:
        moved = {partition: offset for partition, offset in self.log_starts.items() if offset > 0}
        return f"{self.path}/{names.LOG_STARTS}", checkpoints.render_offsets(moved)

    def cut_cleaned_offset(self, partition: TopicPartition, end_offset: int) -> bool:
        """Lowers the cleaned offset to the end of a truncated log: the records that follow are dirty. Returns True if
        the checkpoint has to be written."""
        if self.cleaned_offsets.get(partition, 0) <= end_offset:
            return False
        self.cleaned_offsets[partition] = end_offset
        return True

    def render_cleaned_offsets(self) -> tuple[str, bytes]:
        return f"{self.path}/{names.CLEANED_OFFSETS}", checkpoints.render_offsets(self.cleaned_offsets)

    def release(self) -> None:
        if self._is_locked:
            self._is_locked = False
            self._disk.unlock(f"{self.path}/{names.LOCK}")

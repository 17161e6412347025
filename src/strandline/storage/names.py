"""The names of files and directories in Apache Kafka's format."""

from __future__ import annotations

from typing import Final

from strandline.base.ids import TopicPartition

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
DELETED_DIRECTORY: Final = "-delete"
STRAY_DIRECTORY: Final = "-stray"
FUTURE_DIRECTORY: Final = "-future"

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
META_PROPERTIES: Final = "meta.properties"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
LOCK: Final = ".lock"


def directory_of(path: str) -> str:
    """Returns the directory that holds `path`."""
    above, slash, _ = path.rstrip("/").rpartition("/")
    return above or slash or "."


def segment_file(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


def base_offset_of(name: str) -> int | None:
    """Returns the offset before the first dot, if this is the name of a segment's file."""
    stem = name.partition(".")[0]
    return int(stem) if len(stem) == 20 and stem.isascii() and stem.isdigit() else None


def partition_directory(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def parse_partition_directory(name: str) -> TopicPartition | None:
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not (number.isascii() and number.isdigit()):
        return None
    return TopicPartition(topic, int(number))


def deleted_directory(partition: TopicPartition, unique: str) -> str:
    """Returns `<topic>-<partition>.<unique>-delete`, with the topic cut if the whole is too long for a file name."""
    return _aside(partition, unique, DELETED_DIRECTORY)


def stray_directory(partition: TopicPartition, unique: str) -> str:
    return _aside(partition, unique, STRAY_DIRECTORY)


def future_directory(partition: TopicPartition, unique: str) -> str:
    """Returns the directory of a copy that is to replace the partition, in another log directory."""
    return _aside(partition, unique, FUTURE_DIRECTORY)


def _aside(partition: TopicPartition, unique: str, ending: str) -> str:
    suffix = f"-{partition.partition}.{unique}{ending}"
    return partition.topic[: 255 - len(suffix)] + suffix

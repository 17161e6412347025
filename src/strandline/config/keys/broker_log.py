"""Broker keys of the log: its place, rolling, retention, flushing, compression and compaction.

Most are defaults of a topic key; `topic` says of which.
"""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    ANY_LIST_OR_NULL,
    BOOLEAN,
    CLEANUP_POLICIES,
    CLUSTER_WIDE,
    CODECS,
    DOUBLE,
    GZIP_LEVELS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NON_EMPTY_LIST,
    NON_EMPTY_LIST_OR_NULL,
    PER_BROKER,
    RECORD_VALIDATIONS,
    STRING,
    TIMESTAMP_TYPES,
    ConfigKey,
    accepted,
    active,
    at_least,
    between,
)
from strandline.config.java import DOUBLE_MAX, LONG_MAX

KEYS: Final[tuple[ConfigKey, ...]] = (
    active("num.partitions", INT, 1, at_least(1), MEDIUM).documented(
        "Partitions of a topic that is created without a number of partitions."
    ),
    active("auto.create.topics.enable", BOOLEAN, True, None, HIGH).documented(
        "Whether a topic that a client requests by name is created if it does not exist."
    ),
    active("log.dir", LIST, ("/tmp/kafka-logs",), NON_EMPTY_LIST, HIGH).documented(
        "Directories for logs, if log.dirs is not set."
    ),
    active("log.dirs", LIST, None, NON_EMPTY_LIST_OR_NULL, HIGH).documented(
        "Directories for logs. New partitions are spread over them. Without it, log.dir counts."
    ),
    accepted("cordoned.log.dirs", LIST, (), ANY_LIST_OR_NULL, MEDIUM, PER_BROKER).documented(
        "Log directories that get no new partitions; * is all of them."
    ),
    accepted("log.dir.failure.timeout.ms", LONG, 30_000, at_least(1), LOW).documented(
        "How long a broker tries to tell the controller of a failed directory before it stops itself."
    ),
    active("log.segment.bytes", INT, 1_073_741_824, at_least(1_048_576), HIGH, CLUSTER_WIDE).documented(
        "Size at which a segment is full and the next begins."
    ),
    active("log.roll.ms", LONG, None, None, HIGH, CLUSTER_WIDE).documented(
        "Age at which a segment is closed even if it is not full. Without it, log.roll.hours counts."
    ),
    active("log.roll.hours", INT, 168, at_least(1), HIGH).documented(
        "Age in hours at which a segment is closed even if it is not full."
    ),
    active("log.roll.jitter.ms", LONG, None, None, HIGH, CLUSTER_WIDE).documented(
        "Most that is taken off the age at random, so that segments do not all roll at once. Without it, "
        "log.roll.jitter.hours counts."
    ),
    active("log.roll.jitter.hours", INT, 0, at_least(0), HIGH).documented(
        "Most hours that are taken off the age at random, so that segments do not all roll at once."
    ),
    active("log.retention.ms", LONG, None, None, HIGH, CLUSTER_WIDE).documented(
        "How long records are kept; -1 keeps them forever. Without it, log.retention.minutes counts."
    ),
    active("log.retention.minutes", INT, None, None, HIGH).documented(
        "How many minutes records are kept. Without it, log.retention.hours counts."
    ),
    active("log.retention.hours", INT, 168, None, HIGH).documented("How many hours records are kept."),
    active("log.retention.bytes", LONG, -1, None, HIGH, CLUSTER_WIDE).documented(
        "Size of a partition beyond which its oldest segments are deleted; -1 sets no limit."
    ),
    accepted("log.local.retention.ms", LONG, -2, at_least(-2), MEDIUM, CLUSTER_WIDE).documented(
        "How long segments stay on disk after they are in remote storage; -2 is as long as the retention "
        "time."
    ),
    accepted("log.local.retention.bytes", LONG, -2, at_least(-2), MEDIUM, CLUSTER_WIDE).documented(
        "Bytes of a partition that stay on disk after they are in remote storage; -2 is the retention size."
    ),
    active("log.retention.check.interval.ms", LONG, 300_000, at_least(1), MEDIUM).documented(
        "How often logs are searched for segments that may be deleted."
    ),
    active("log.cleanup.policy", LIST, ("delete",), CLEANUP_POLICIES, MEDIUM, CLUSTER_WIDE).documented(
        "How old records are treated: deleted, compacted to the last of each key, both, or (empty list) neither."
    ),
    active("log.index.size.max.bytes", INT, 10_485_760, at_least(4), MEDIUM, CLUSTER_WIDE).documented(
        "Size at which an index is full. A full index closes its segment."
    ),
    active("log.index.interval.bytes", INT, 4096, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "Bytes of records between two index entries. A smaller number finds offsets faster in a larger index."
    ),
    active("log.flush.interval.messages", LONG, LONG_MAX, at_least(1), HIGH, CLUSTER_WIDE).documented(
        "Records of a partition after which they are forced to disk."
    ),
    active("log.flush.interval.ms", LONG, None, None, HIGH, CLUSTER_WIDE).documented(
        "How long records may wait in memory before they are forced to disk. Without it, "
        "log.flush.scheduler.interval.ms counts."
    ),
    active("log.flush.scheduler.interval.ms", LONG, LONG_MAX, None, HIGH).documented(
        "How often logs are searched for records that must be forced to disk."
    ),
    active("log.flush.offset.checkpoint.interval.ms", INT, 60_000, at_least(0), HIGH).documented(
        "How often the offset up to which logs are safely on disk is written down, which shortens recovery."
    ),
    active("log.flush.start.offset.checkpoint.interval.ms", INT, 60_000, at_least(0), HIGH).documented(
        "How often the log start offset of each partition is written to its checkpoint, so that deleted "
        "records stay deleted."
    ),
    active("log.segment.delete.delay.ms", LONG, 60_000, at_least(0), HIGH, CLUSTER_WIDE).documented(
        "How long the files of a deleted segment stay before they are removed."
    ),
    active("log.preallocate", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE).documented(
        "Whether the file of a new segment gets its full size at once."
    ),
    active("num.recovery.threads.per.data.dir", INT, 2, at_least(1), HIGH, CLUSTER_WIDE).documented(
        "Logs of each directory that are recovered at a time after an unclean end, and synced at a time at a stop."
    ),
    accepted("num.replica.alter.log.dirs.threads", INT, None, None, HIGH).documented(
        "Threads that move replicas between log directories. Without it, one for each directory."
    ),
    active("message.max.bytes", INT, 1_048_588, at_least(0), HIGH, CLUSTER_WIDE).documented(
        "Largest batch of records that is accepted, after compression."
    ),
    active("compression.type", STRING, "producer", CODECS, HIGH, CLUSTER_WIDE).documented(
        "How batches are stored: as the producer sent them, uncompressed, or recompressed with one codec."
    ),
    active("compression.gzip.level", INT, -1, GZIP_LEVELS, MEDIUM, CLUSTER_WIDE).documented(
        "Level of gzip where batches are recompressed; -1 is the library's own choice."
    ),
    active("compression.lz4.level", INT, 9, between(1, 17), MEDIUM, CLUSTER_WIDE).documented(
        "Level of lz4 where batches are recompressed."
    ),
    active("compression.zstd.level", INT, 3, between(-131_072, 22), MEDIUM, CLUSTER_WIDE).documented(
        "Level of zstd where batches are recompressed."
    ),
    active(
        "log.message.timestamp.type", STRING, "CreateTime", TIMESTAMP_TYPES, MEDIUM, CLUSTER_WIDE
    ).documented("The timestamp of a record: the one that its producer set, or the time of the append."),
    active(
        "log.message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE
    ).documented("How far a producer's timestamp may lie in the past before the record is refused."),
    active(
        "log.message.timestamp.after.max.ms", LONG, 3_600_000, at_least(0), MEDIUM, CLUSTER_WIDE
    ).documented("How far a producer's timestamp may lie in the future before the record is refused."),
    active("log.cleaner.enable", BOOLEAN, True, None, MEDIUM).documented(
        "Whether the cleaner runs. Without it, compacted topics only grow."
    ),
    active("log.cleaner.threads", INT, 1, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "Logs that are compacted at a time. Large ones are compacted in a process of their own."
    ),
    active("log.cleaner.io.max.bytes.per.second", DOUBLE, DOUBLE_MAX, None, MEDIUM, CLUSTER_WIDE).documented(
        "Most bytes a second that all compaction together reads and writes."
    ),
    active("log.cleaner.dedupe.buffer.size", LONG, 134_217_728, None, MEDIUM, CLUSTER_WIDE).documented(
        "Memory for the maps from key to last offset, shared by cleanings that run at a time. A log with more "
        "keys takes several rounds."
    ),
    active("log.cleaner.io.buffer.size", INT, 524_288, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "Memory for the input and output of compaction, shared by the cleaner's threads."
    ),
    active("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, None, MEDIUM, CLUSTER_WIDE).documented(
        "How full a map of keys may get. A fuller map takes more keys at once, with more collisions."
    ),
    active("log.cleaner.backoff.ms", LONG, 15_000, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "How long the cleaner sleeps when no log needs it."
    ),
    active("log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, between(0, 1), MEDIUM, CLUSTER_WIDE).documented(
        "Share of the log that must be uncompacted before compaction is worth it."
    ),
    active("log.cleaner.delete.retention.ms", LONG, 86_400_000, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "How long tombstones stay in a compacted topic, so that slow readers still see them."
    ),
    active("log.cleaner.min.compaction.lag.ms", LONG, 0, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "How long a record stays uncompacted at least."
    ),
    active("log.cleaner.max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), MEDIUM, CLUSTER_WIDE).documented(
        "How long a record stays uncompacted at most."
    ),
    active("strandline.log.scrub.enable", BOOLEAN, True, None, MEDIUM).documented(
        "Whether closed segments are read in the background to find bits that flipped on the disk. A damaged replica "
        "is replaced by another one."
    ),
    active("strandline.log.scrub.interval.ms", LONG, 604_800_000, at_least(1000), LOW).documented(
        "How often each closed segment is read to find damage."
    ),
    active("strandline.log.scrub.bytes.per.second", LONG, 5_242_880, at_least(1024), LOW).documented(
        "How many bytes a second are read to find damage, in each log directory."
    ),
    active(
        "strandline.record.validation", STRING, "full", RECORD_VALIDATIONS, MEDIUM, CLUSTER_WIDE
    ).documented(
        "What of a batch is checked before it is appended: every record (full), as Kafka does, or only its header "
        "where nothing else asks for records (header), for producers that one trusts."
    ),
)

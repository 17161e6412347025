"""Topic keys, and the broker keys from which a topic without a setting of its own takes each value.

A topic's own setting comes first, then the broker keys in the order of this module. Some of those have other units:
log.retention.hours is a synonym of retention.ms, an hour being 3,600,000 of its milliseconds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.config.definition import (
    BOOLEAN,
    CLEANUP_POLICIES,
    CODECS,
    DOUBLE,
    GZIP_LEVELS,
    INT,
    LIST,
    LONG,
    MEDIUM,
    PER_TOPIC,
    RECORD_VALIDATIONS,
    REPLICAS,
    STRING,
    TIMESTAMP_TYPES,
    ConfigKey,
    accepted,
    active,
    at_least,
    between,
)
from strandline.config.java import LONG_MAX

_KEYS: Final[tuple[ConfigKey, ...]] = (
    active("cleanup.policy", LIST, ("delete",), CLEANUP_POLICIES, MEDIUM, PER_TOPIC).documented(
        "How old records are treated: deleted, compacted to the last of each key, both, or (empty list) neither."
    ),
    active("compression.type", STRING, "producer", CODECS, MEDIUM, PER_TOPIC).documented(
        "How batches are stored: as the producer sent them, uncompressed, or recompressed with one codec."
    ),
    active("compression.gzip.level", INT, -1, GZIP_LEVELS, MEDIUM, PER_TOPIC).documented(
        "Level of gzip where batches are recompressed; -1 is the library's own choice."
    ),
    active("compression.lz4.level", INT, 9, between(1, 17), MEDIUM, PER_TOPIC).documented(
        "Level of lz4 where batches are recompressed."
    ),
    active("compression.zstd.level", INT, 3, between(-131_072, 22), MEDIUM, PER_TOPIC).documented(
        "Level of zstd where batches are recompressed."
    ),
    active("delete.retention.ms", LONG, 86_400_000, at_least(0), MEDIUM, PER_TOPIC).documented(
        "How long tombstones stay in a compacted topic, so that slow readers still see them."
    ),
    active("file.delete.delay.ms", LONG, 60_000, at_least(0), MEDIUM, PER_TOPIC).documented(
        "How long the files of a deleted segment stay before they are removed."
    ),
    active("flush.messages", LONG, LONG_MAX, at_least(1), MEDIUM, PER_TOPIC).documented(
        "Records after which a partition is forced to disk, within the append. 1 forces every append."
    ),
    active("flush.ms", LONG, LONG_MAX, at_least(0), MEDIUM, PER_TOPIC).documented(
        "How long records may wait in memory before they are forced to disk in the background."
    ),
    active("follower.replication.throttled.replicas", LIST, (), REPLICAS, MEDIUM, PER_TOPIC).documented(
        "Replicas whose followers obey follower.replication.throttled.rate."
    ),
    active("leader.replication.throttled.replicas", LIST, (), REPLICAS, MEDIUM, PER_TOPIC).documented(
        "Replicas whose leaders obey leader.replication.throttled.rate."
    ),
    active("index.interval.bytes", INT, 4096, at_least(0), MEDIUM, PER_TOPIC).documented(
        "Bytes of records between two index entries. A smaller number finds offsets faster in a larger index."
    ),
    active("internal.segment.bytes", INT, None, None, MEDIUM, PER_TOPIC).internal(
        "Size of a segment without the lower bound of segment.bytes, for tests. Where it is set, it counts."
    ),
    accepted("local.retention.bytes", LONG, -2, at_least(-2), MEDIUM, PER_TOPIC).documented(
        "Bytes of a partition that stay on disk after they are in remote storage; -2 is retention.bytes."
    ),
    accepted("local.retention.ms", LONG, -2, at_least(-2), MEDIUM, PER_TOPIC).documented(
        "How long segments stay on disk after they are in remote storage; -2 is retention.ms."
    ),
    active("max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), MEDIUM, PER_TOPIC).documented(
        "How long a record stays uncompacted at most."
    ),
    active("max.message.bytes", INT, 1_048_588, at_least(0), MEDIUM, PER_TOPIC).documented(
        "Largest batch of records that is accepted, after compression."
    ),
    active("message.timestamp.after.max.ms", LONG, 3_600_000, at_least(0), MEDIUM, PER_TOPIC).documented(
        "How far a producer's timestamp may lie in the future before the record is refused."
    ),
    active("message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0), MEDIUM, PER_TOPIC).documented(
        "How far a producer's timestamp may lie in the past before the record is refused."
    ),
    active("message.timestamp.type", STRING, "CreateTime", TIMESTAMP_TYPES, MEDIUM, PER_TOPIC).documented(
        "The timestamp of a record: the one that its producer set, or the time of the append."
    ),
    active("min.cleanable.dirty.ratio", DOUBLE, 0.5, between(0, 1), MEDIUM, PER_TOPIC).documented(
        "Share of the log that must be uncompacted before compaction is worth it."
    ),
    active("min.compaction.lag.ms", LONG, 0, at_least(0), MEDIUM, PER_TOPIC).documented(
        "How long a record stays uncompacted at least."
    ),
    active("min.insync.replicas", INT, 1, at_least(1), MEDIUM, PER_TOPIC).documented(
        "Replicas that must be in sync for a write with acks=all. With fewer in sync, such writes are refused."
    ),
    active("preallocate", BOOLEAN, False, None, MEDIUM, PER_TOPIC).documented(
        "Whether the file of a new segment gets its full size at once."
    ),
    accepted("remote.log.copy.disable", BOOLEAN, False, None, MEDIUM, PER_TOPIC).documented(
        "Whether a topic in tiered storage stops copying and only reads the segments that are there."
    ),
    accepted("remote.log.delete.on.disable", BOOLEAN, False, None, MEDIUM, PER_TOPIC).documented(
        "Whether remote segments are deleted when tiered storage is turned off for the topic."
    ),
    accepted("remote.storage.enable", BOOLEAN, False, None, MEDIUM, PER_TOPIC).documented(
        "Whether closed segments of the topic go to remote storage."
    ),
    active("retention.bytes", LONG, -1, None, MEDIUM, PER_TOPIC).documented(
        "Size of a partition beyond which its oldest segments are deleted; -1 sets no limit."
    ),
    active("retention.ms", LONG, 604_800_000, at_least(-1), MEDIUM, PER_TOPIC).documented(
        "How long records are kept; -1 keeps them forever."
    ),
    active("segment.bytes", INT, 1_073_741_824, at_least(1_048_576), MEDIUM, PER_TOPIC).documented(
        "Size at which a segment is full and the next begins."
    ),
    active("segment.index.bytes", INT, 10_485_760, at_least(4), MEDIUM, PER_TOPIC).documented(
        "Size at which an index is full. A full index closes its segment."
    ),
    active("segment.jitter.ms", LONG, 0, at_least(0), MEDIUM, PER_TOPIC).documented(
        "Most that is taken off segment.ms at random, so that segments do not all roll at once."
    ),
    active("segment.ms", LONG, 604_800_000, at_least(1), MEDIUM, PER_TOPIC).documented(
        "Age at which a segment is closed even if it is not full."
    ),
    active("strandline.observers", LIST, (), None, MEDIUM, PER_TOPIC).documented(
        "Brokers, by node id or rack, that copy the topic without being replicas: never in sync, never leaders, "
        "and near their consumers. Not a key of Kafka's."
    ),
    active("strandline.record.validation", STRING, "full", RECORD_VALIDATIONS, MEDIUM, PER_TOPIC).documented(
        "What of a batch is checked before it is appended: every record (full), as Kafka does, or only its header "
        "where nothing else asks for records (header), for producers that one trusts. Not a key of Kafka's."
    ),
    active("unclean.leader.election.enable", BOOLEAN, False, None, MEDIUM, PER_TOPIC).documented(
        "Whether a replica that is not in sync may lead when no other is left, at the price of lost records."
    ),
)

TOPIC_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for key in _KEYS}


class Synonym(NamedTuple):
    """A broker key with the default of a topic key; its unit is `factor` times the topic key's."""

    name: str
    factor: int = 1


_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS


def _same(name: str) -> tuple[Synonym, ...]:
    return (Synonym(name),)


SYNONYMS: Final[dict[str, tuple[Synonym, ...]]] = {
    "cleanup.policy": _same("log.cleanup.policy"),
    "compression.type": _same("compression.type"),
    "compression.gzip.level": _same("compression.gzip.level"),
    "compression.lz4.level": _same("compression.lz4.level"),
    "compression.zstd.level": _same("compression.zstd.level"),
    "delete.retention.ms": _same("log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": _same("log.segment.delete.delay.ms"),
    "flush.messages": _same("log.flush.interval.messages"),
    "flush.ms": (Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
    "index.interval.bytes": _same("log.index.interval.bytes"),
    "local.retention.bytes": _same("log.local.retention.bytes"),
    "local.retention.ms": _same("log.local.retention.ms"),
    "max.compaction.lag.ms": _same("log.cleaner.max.compaction.lag.ms"),
    "max.message.bytes": _same("message.max.bytes"),
    "message.timestamp.after.max.ms": _same("log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": _same("log.message.timestamp.before.max.ms"),
    "message.timestamp.type": _same("log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": _same("log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": _same("log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": _same("min.insync.replicas"),
    "preallocate": _same("log.preallocate"),
    "retention.bytes": _same("log.retention.bytes"),
    "retention.ms": (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", _MINUTE_MS),
        Synonym("log.retention.hours", _HOUR_MS),
    ),
    "segment.bytes": _same("log.segment.bytes"),
    "segment.index.bytes": _same("log.index.size.max.bytes"),
    "segment.jitter.ms": (Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS)),
    "strandline.record.validation": _same("strandline.record.validation"),
    "unclean.leader.election.enable": _same("unclean.leader.election.enable"),
}

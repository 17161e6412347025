"""The age at which a segment is rolled."""

from __future__ import annotations

from crc32c import crc32c

from strandline.base.ids import TopicPartition
from strandline.config import TopicConfig
from strandline.storage.segment import Segment


def is_over_age(
    segment: Segment,
    config: TopicConfig,
    partition: TopicPartition,
    max_timestamp: int,
    waited_ms: int,
) -> bool:
    """Returns True if the segment is older than `segment.ms`, or so old that compaction must not wait for it any
    longer.

    Its age follows from the timestamps of its records, so that replaying old data rolls at the same places; without
    timestamps it is the time since the segment was created.
    """
    first = segment.first_timestamp
    age_ms = waited_ms if first is None or first < 0 else max_timestamp - first
    if config.segment_jitter_ms:
        age_ms += _jitter_ms(segment, config, partition)
    return age_ms > config.segment_ms or (
        age_ms > config.max_compaction_lag_ms and "compact" in config.cleanup_policy
    )


def _jitter_ms(segment: Segment, config: TopicConfig, partition: TopicPartition) -> int:
    """Returns how much earlier this segment is rolled, so that partitions that began together do not roll together."""
    limit = min(config.segment_jitter_ms, config.segment_ms)
    return crc32c(f"{partition} {segment.base_offset}".encode()) % limit

"""The segments that have outlived their topic's retention. The active one stays, unless it is rolled first.

Each function begins at the oldest segment and stops at the first that stays, so a check takes as long as the deletion
and not as the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from strandline.config import TopicConfig
from strandline.storage.segment import Segment

UNLIMITED: Final = -1


def expired_by_time(segments: Iterable[Segment], config: TopicConfig, now_ms: int) -> int:
    """Returns how many of the oldest segments are older than retention.ms; it stops at the first that is not."""
    if config.retention_ms == UNLIMITED:
        return 0
    count = 0
    for segment in segments:
        if segment.size == 0 and not segment.offset_index.is_active:
            count += 1  # compaction has left no record of it
            continue
        if segment.size == 0 or now_ms - segment.latest_ms() <= config.retention_ms:
            break
        count += 1
    return count


def expired_by_size(segments: Iterable[Segment], config: TopicConfig, total_bytes: int) -> int:
    """Returns how many of the oldest segments can be deleted while at least retention.bytes stay."""
    if config.retention_bytes == UNLIMITED:
        return 0
    surplus = total_bytes - config.retention_bytes
    count = 0
    for segment in segments:
        if surplus < max(segment.size, 1):
            break
        surplus -= segment.size
        count += 1
    return count


def below_start(segments: Sequence[Segment], log_start_offset: int) -> int:
    """Returns how many of the oldest segments end at or before the log start offset."""
    count = 0
    for following in segments[1:]:
        if following.base_offset > log_start_offset:
            break
        count += 1
    return count

"""The settings of one topic for the hot path: one typed attribute for each topic key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from strandline.config.definition import ConfigValue
from strandline.config.keys.topic import TOPIC_KEYS


class TopicConfig:
    """The configuration of a topic: overrides, broker settings and defaults combined. It never changes.

    Topics without overrides share one object, so `is` shows whether anything has changed.
    """

    __slots__ = tuple(name.replace(".", "_") for name in TOPIC_KEYS if not TOPIC_KEYS[name].internal)

    cleanup_policy: tuple[str, ...]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    leader_replication_throttled_replicas: tuple[str, ...]
    local_retention_bytes: int
    local_retention_ms: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"]
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    remote_storage_enable: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    """The value of internal.segment.bytes, if a test has set it."""
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    strandline_observers: tuple[str, ...]
    strandline_record_validation: str
    unclean_leader_election_enable: bool

    def __init__(self, values: Mapping[str, ConfigValue]) -> None:
        """Makes the attributes from a value for every topic key, by the key's name."""
        for attribute, name in _ATTRIBUTES:
            object.__setattr__(self, attribute, values[name])
        if values["internal.segment.bytes"] is not None:
            object.__setattr__(self, "segment_bytes", values["internal.segment.bytes"])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} cannot be set: a topic's settings are replaced, never changed")

    def __repr__(self) -> str:
        return "TopicConfig(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__) + ")"


_ATTRIBUTES = tuple((name.replace(".", "_"), name) for name in TOPIC_KEYS if not TOPIC_KEYS[name].internal)

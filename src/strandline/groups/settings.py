"""What a coordinator needs to know of the broker's configuration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    session_timeout_min_ms: int
    session_timeout_max_ms: int
    initial_rebalance_delay_ms: int
    group_size_max: int
    new_member_join_timeout_ms: int
    offset_metadata_bytes_max: int
    offsets_retention_ms: int
    consumer_session_timeout_ms: int
    consumer_heartbeat_interval_ms: int
    consumer_group_size_max: int
    consumer_assignors: tuple[str, ...]
    migration_policy: str

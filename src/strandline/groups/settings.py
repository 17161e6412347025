"""What a coordinator needs to know of the broker's configuration, and what time it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Moment(NamedTuple):
    """Now, by both clocks: intervals go by `monotonic`, what is written down by `wall_ms`."""

    monotonic: float
    wall_ms: int

    def after_ms(self, ms: int) -> float:
        return self.monotonic + ms / 1000


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

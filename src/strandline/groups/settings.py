"""The part of the broker's configuration that a group coordinator needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class ConsumerTimes(NamedTuple):
    session_timeout_ms: int
    heartbeat_interval_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    session_timeout_min_ms: int
    session_timeout_max_ms: int
    initial_rebalance_delay_ms: int
    group_size_max: int
    new_member_join_timeout_ms: int
    offset_metadata_size_max: int
    offsets_retention_ms: int
    consumer_times: Callable[[str], ConsumerTimes]  # the settings of a group, each of which may have its own
    consumer_group_size_max: int
    consumer_assignors: tuple[str, ...]
    migration_policy: str

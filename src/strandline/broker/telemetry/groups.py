"""Metrics of groups under the names of kafka_exporter (`kafka_consumergroup_lag`), of kafka-lag-exporter
(`kafka_consumergroup_group_lag`) and of Kafka's group coordinator. `cli/metrics/rules.yml` has alerts on them.
"""

from __future__ import annotations

from typing import Final

from strandline.broker.coordinator.group_service import GroupCoordinator
from strandline.broker.node_context import NodeContext
from strandline.broker.telemetry.lag import GroupRow, LagMonitor
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.rebalance_times import BEGUN, COMPLETED, LONGEST_MS, TOTAL_MS
from strandline.telemetry.exposition import (
    GAUGE,
    MANY,
    PER_PARTITION,
    Families,
    Family,
    Sample,
    counter,
    escaped,
    gauge,
    labels,
)
from strandline.telemetry.lag import STATUS_NUMBERS

_STATES: Final = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")


class GroupCollector:
    def __init__(
        self, node: NodeContext, groups: GroupCoordinator, monitor: LagMonitor, cluster_id: str
    ) -> None:
        self._node = node
        self._groups = groups
        self._monitor = monitor
        self._cluster = escaped(cluster_id)

    def node_families(self) -> Families:
        states: dict[tuple[str, str], int] = {}
        offsets = 0
        for runtime in self._groups.shards():
            for group in list(runtime.shard.groups.values()):
                kind = "consumer" if isinstance(group, ConsumerGroup) else "classic"
                states[kind, group.state] = states.get((kind, group.state), 0) + 1
            offsets += runtime.shard.offsets.count()
            yield None
        name = "kafka_coordinator_group_groupmetadatamanager_"
        yield gauge(f"{name}numgroups", "Groups that this broker coordinates.", sum(states.values()))
        yield gauge(f"{name}numoffsets", "Committed offsets that this broker keeps.", offsets)
        for state in _STATES:
            count = sum(found for (_, each), found in states.items() if each == state)
            yield gauge(f"{name}numgroups{state.lower()}", f"Groups in the state {state}.", count)
        yield Family(
            "kafka_server_group_coordinator_metrics_group_count",
            GAUGE,
            "Groups that this broker coordinates, by protocol and state.",
            [(labels(protocol=kind, state=state), count) for (kind, state), count in sorted(states.items())],
        )
        counters = self._node.counters
        yield counter(
            "strandline_group_rebalances_begun_total", "Rebalances that began.", counters.get(BEGUN)
        )
        help_ = "Rebalances that were completed."
        yield counter("strandline_group_rebalances_completed_total", help_, counters.get(COMPLETED))
        help_ = "Time that completed rebalances took."
        yield counter("strandline_group_rebalance_seconds_total", help_, counters.get(TOTAL_MS) / 1000)
        help_ = "The longest completed rebalance."
        yield gauge("strandline_group_rebalance_seconds_max", help_, counters.get(LONGEST_MS) / 1000)

    def lag_families(self) -> Families:
        rows: list[GroupRow] = []
        for row in self._monitor.rows():
            if row is None:
                yield None
            else:
                rows.append(row)
        yield from self._of_groups(rows)
        yield from self._of_topics(rows)
        yield from self._of_partitions(rows)

    def _of_groups(self, rows: list[GroupRow]) -> Families:
        now_ms, rules = self._node.clock.wall_ms(), self._monitor.rules
        members: list[Sample] = []
        sums: list[Sample] = []
        largest: list[Sample] = []
        largest_s: list[Sample] = []
        statuses: list[Sample] = []
        trends: list[Sample] = []
        for number, row in enumerate(rows):
            group = escaped(row.group_id)
            members.append((f'{{consumergroup="{group}"}}', row.member_count))
            status = STATUS_NUMBERS[row.status(now_ms, rules)]
            statuses.append((f'{{consumergroup="{group}"}}', status))
            trend = sum(each.seen.trend() for each in row.partitions)
            trends.append((f'{{consumergroup="{group}"}}', round(trend, 4)))
            key = f'{{cluster_name="{self._cluster}",group="{group}"}}'
            sums.append((key, row.total_lag))
            largest.append((key, max((each.seen.lag for each in row.partitions), default=0)))
            known = [each.lag_s for each in row.partitions if each.lag_s is not None]
            largest_s.append((key, max(known, default=0.0)))
            if number % 5 == 0:
                yield None
        for name, help_, samples in (
            ("kafka_consumergroup_members", "Members of the group.", members),
            ("kafka_consumergroup_group_sum_lag", "Records that the group has still to read.", sums),
            ("kafka_consumergroup_group_max_lag", "Of its partition that is furthest behind.", largest),
            (
                "kafka_consumergroup_group_max_lag_seconds",
                "How long ago the oldest record was written that the group has still to read.",
                largest_s,
            ),
            (
                "strandline_consumergroup_status",
                "0 if the group is OK, 1 if WARN, 2 if ERR (docs/operating/monitoring.md).",
                statuses,
            ),
            (
                "strandline_consumergroup_lag_trend",
                "Records by which the group's lag grows each second, as far as it was seen.",
                trends,
            ),
        ):
            yield Family(name, GAUGE, help_, samples, MANY)

    def _of_topics(self, rows: list[GroupRow]) -> Families:
        lags: dict[tuple[str, str], int] = {}
        offsets: dict[tuple[str, str], int] = {}
        for row in rows:
            group = escaped(row.group_id)
            for each in row.partitions:
                place = (group, escaped(each.topic))
                lags[place] = lags.get(place, 0) + each.seen.lag
                offsets[place] = offsets.get(place, 0) + each.seen.offset
            yield None
        keys = {place: f'{{consumergroup="{place[0]}",topic="{place[1]}"}}' for place in lags}
        yield Family(
            "kafka_consumergroup_lag_sum",
            GAUGE,
            "Records of the topic that the group has still to read.",
            [(keys[place], lag) for place, lag in lags.items()],
            MANY,
        )
        yield Family(
            "kafka_consumergroup_current_offset_sum",
            GAUGE,
            "The sum of the offsets that the group has committed.",
            [(keys[place], offset) for place, offset in offsets.items()],
            MANY,
        )
        yield Family(
            "kafka_consumergroup_group_topic_sum_lag",
            GAUGE,
            "Records of the topic that the group has still to read.",
            [
                (f'{{cluster_name="{self._cluster}",group="{group}",topic="{topic}"}}', lag)
                for (group, topic), lag in lags.items()
            ],
            MANY,
        )

    def _of_partitions(self, rows: list[GroupRow]) -> Families:
        offsets: list[Sample] = []
        lags: list[Sample] = []
        group_lags: list[Sample] = []
        group_offsets: list[Sample] = []
        seconds: list[Sample] = []
        rows.reverse()
        while rows:
            row = rows.pop()  # and frees it
            group = escaped(row.group_id)
            for each in row.partitions:
                topic = escaped(each.topic)
                key = f'{{consumergroup="{group}",topic="{topic}",partition="{each.partition}"}}'
                offsets.append((key, each.seen.offset))
                lags.append((key, each.seen.lag))
                member = each.member
                who = (
                    ("", "", "")
                    if member is None
                    else (escaped(member.host), member.member_id, member.client_id)
                )
                key = (
                    f'{{cluster_name="{self._cluster}",group="{group}",topic="{topic}",partition="{each.partition}",'
                    f'member_host="{who[0]}",consumer_id="{escaped(who[1])}",client_id="{escaped(who[2])}"}}'
                )
                group_lags.append((key, each.seen.lag))
                group_offsets.append((key, each.seen.offset))
                if each.lag_s is not None:
                    seconds.append((key, each.lag_s))
            yield None
        for name, help_, samples in (
            ("kafka_consumergroup_lag", "Records that the group has still to read.", lags),
            ("kafka_consumergroup_current_offset", "The offset that the group has committed.", offsets),
            ("kafka_consumergroup_group_lag", "Records that the group has still to read.", group_lags),
            (
                "kafka_consumergroup_group_lag_seconds",
                "How long ago the oldest record was written that the group has still to read.",
                seconds,
            ),
            ("kafka_consumergroup_group_offset", "The offset that the group has committed.", group_offsets),
        ):
            yield Family(name, GAUGE, help_, samples, PER_PARTITION)
            yield None

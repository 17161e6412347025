"""The watch of `strandline lag`: computes status, trend and seconds from one measurement to the next, and reports
changes of the status. A client sees offsets but not the times of their commits: a commit has the time of the
measurement that saw it first. A consumer that commits the same offset again looks as if it had stopped.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.admin.lag import GroupLagDescription
from strandline.telemetry.lag import EndOffsets, LagRules, PartitionLag, group_status

# A command or a webhook that takes longer is stopped, because the next measurement must not wait for it.
_NOTIFY_S: Final = 10.0


class LagWatch:
    def __init__(self, rules: LagRules, command: str | None = None, webhook: str | None = None) -> None:
        self._rules = rules
        self._command = command
        self._webhook = webhook
        self._seen: dict[
            str, dict[TopicPartition, tuple[PartitionLag, int]]
        ] = {}  # with the time of the commit
        self._ends: dict[TopicPartition, EndOffsets] = {}
        self._statuses: dict[str, str] = {}

    def look(self, found: Mapping[str, GroupLagDescription], now_ms: int) -> dict[str, Any]:
        """Returns the rows to show, and notifies the command and the webhook of changes of the status."""
        for where, end in {
            TopicPartition(each.topic, each.partition): each.end_offset
            for group in found.values()
            for each in group.partitions
            if each.end_offset >= 0
        }.items():
            self._ends.setdefault(where, EndOffsets()).see(end, now_ms)
        groups = [self._group(group, now_ms) for group in found.values()]
        for group in groups:
            before = self._statuses.get(group["group"])
            if before is not None and before != group["status"]:
                self._notify({**group, "previous_status": before, "time_ms": now_ms})
        self._statuses = {group["group"]: group["status"] for group in groups}
        for gone in [each for each in self._seen if each not in found]:
            del self._seen[gone]
        return {"time_ms": now_ms, "groups": groups}

    def _group(self, group: GroupLagDescription, now_ms: int) -> dict[str, Any]:
        mine = self._seen.setdefault(group.group_id, {})
        partitions: list[dict[str, Any]] = []
        trend = 0.0
        for each in group.partitions:
            where = TopicPartition(each.topic, each.partition)
            seen, committed_ms = mine.get(where) or (PartitionLag(), now_ms)
            if seen.offset != each.committed_offset:
                committed_ms = now_ms
            mine[where] = (seen, committed_ms)
            if each.end_offset >= 0:
                seen.see(each.committed_offset, each.end_offset, committed_ms, now_ms, self._rules)
            trend += seen.trend()
            ends = self._ends.get(where)
            partitions.append(
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "committed_offset": each.committed_offset,
                    "end_offset": each.end_offset,
                    "lag": each.lag,
                    "seconds": None if ends is None else ends.lag_s(each.committed_offset, now_ms),
                    "status": seen.status(now_ms, self._rules),
                    "member_id": each.member_id,
                    "client_id": each.client_id,
                    "host": each.host,
                }
            )
        known = [each["seconds"] for each in partitions if each["seconds"] is not None]
        return {
            "group": group.group_id,
            "status": group_status(group.lag, (each["status"] for each in partitions), self._rules),
            "lag": group.lag,
            "seconds": max(known) if len(known) == len(partitions) and known else None,
            "seconds_are_estimated": True,
            "trend": trend,
            "members": group.member_count,
            "state": group.state,
            "coordinator": group.coordinator_id,
            "partitions": partitions,
        }

    def _notify(self, change: dict[str, Any]) -> None:
        text = json.dumps({name: value for name, value in change.items() if name != "partitions"})
        if self._command is not None:
            try:
                subprocess.run(
                    self._command, shell=True, input=text, text=True, timeout=_NOTIFY_S, check=True
                )
            except (subprocess.SubprocessError, OSError) as error:
                print(f"strandline: --command: {error}", file=sys.stderr)
        if self._webhook is not None:
            headers = {"Content-Type": "application/json"}
            try:
                request = urllib.request.Request(self._webhook, text.encode(), headers, method="POST")
                with urllib.request.urlopen(request, timeout=_NOTIFY_S):
                    pass
            except (OSError, ValueError) as error:
                print(f"strandline: --webhook: {error}", file=sys.stderr)

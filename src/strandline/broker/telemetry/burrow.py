"""The lag of groups over HTTP in the format of Burrow's API (/v3/kafka), for tools that read Burrow.

A node shows the groups that it coordinates; for a group of another node the message names that node.
"""

from __future__ import annotations

from typing import Any

from strandline.base.errors import KafkaError
from strandline.broker.coordinator.group_service import GroupCoordinator
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replicas import Replicas
from strandline.broker.telemetry.lag import GroupRow, LagMonitor, PartitionRow
from strandline.telemetry.lag import NOT_FOUND, OK, WINDOW, SeenCommit

StatusAndBody = tuple[int, dict[str, Any]]


class BurrowApi:
    def __init__(
        self,
        node: NodeContext,
        groups: GroupCoordinator,
        replicas: Replicas,
        monitor: LagMonitor,
        cluster_id: str,
    ) -> None:
        self._node = node
        self._groups = groups
        self._replicas = replicas
        self._monitor = monitor
        self._cluster_id = cluster_id

    def respond(self, path: tuple[str, ...]) -> StatusAndBody:
        """Returns the status and the body for a path below /v3/kafka."""
        if not path:
            return 200, _body("cluster list returned", clusters=[self._cluster_id])
        if path[0] != self._cluster_id:
            return _absent("cluster not found")
        match path[1:]:
            case ():
                module = {"class-name": "strandline", "servers": [], "topic-refresh": 0, "offset-refresh": 0}
                return 200, _body("cluster module detail returned", module=module)
            case ("topic",):
                return 200, _body("topic list returned", topics=sorted(self._node.image.topics))
            case ("topic", topic):
                return self._topic(topic)
            case ("topic", topic, "consumers"):
                names = [
                    row.group_id
                    for row in self._rows()
                    if any(each.topic == topic for each in row.partitions)
                ]
                return 200, _body("consumers of topic returned", consumers=sorted(names))
            case ("consumer",):
                return 200, _body(
                    "consumer list returned", consumers=sorted(row.group_id for row in self._rows())
                )
            case ("consumer", group):
                return self._detail(group)
            case ("consumer", group, "status"):
                return self._status(group, shows_all=False)
            case ("consumer", group, "lag"):
                return self._status(group, shows_all=True)
            case _:
                return _absent("invalid request type")

    def _rows(self) -> list[GroupRow]:
        return [row for row in self._monitor.rows() if row is not None]

    def _topic(self, name: str) -> StatusAndBody:
        topic = self._node.image.topics.get(name)
        if topic is None:
            return _absent("cluster or topic not found")
        offsets = []
        for index in sorted(topic.partitions):
            replica = self._replicas.get(name, index)
            offsets.append(0 if replica is None else replica.high_watermark)
        return 200, _body("topic offsets returned", offsets=offsets)

    def _not_here(self, group: str) -> str:
        try:
            leader = self._groups.leader_of(group)
        except KafkaError:
            return "cluster or consumer not found"
        if leader in (self._node.node_id, -1):
            return "cluster or consumer not found"
        return f"consumer not found here: node {leader} coordinates it"

    def _detail(self, group: str) -> StatusAndBody:
        row = self._monitor.row(group)
        if row is None:
            return _absent(self._not_here(group))
        topics: dict[str, list[dict[str, Any]]] = {}
        for each in row.partitions:
            topics.setdefault(each.topic, []).append(
                {
                    "offsets": [_offset(commit) for commit in each.seen.commits],
                    "owner": _owner(each)[0],
                    "client_id": _owner(each)[1],
                    "current-lag": each.seen.lag,
                }
            )
        return 200, _body("consumer detail returned", topics=topics)

    def _status(self, group: str, *, shows_all: bool) -> StatusAndBody:
        row = self._monitor.row(group)
        if row is None:
            status = _group_status(self._cluster_id, group, NOT_FOUND, [], 0)
            return 404, _body(self._not_here(group), status=status)
        now_ms, rules = self._node.clock.wall_ms(), self._monitor.rules
        partitions = [_partition(each, each.seen.status(now_ms, rules)) for each in row.partitions]
        status = _group_status(
            self._cluster_id, group, row.status(now_ms, rules), partitions, row.total_lag, shows_all=shows_all
        )
        return 200, _body("consumer status returned", status=status)


def _body(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": False, "message": message, **fields}


def _absent(message: str) -> StatusAndBody:
    return 404, {"error": True, "message": message}


def _owner(row: PartitionRow) -> tuple[str, str]:
    return ("", "") if row.member is None else (row.member.host, row.member.client_id)


def _offset(commit: SeenCommit) -> dict[str, int]:
    return {
        "offset": commit.offset,
        "timestamp": commit.time_ms,
        "observedTimestamp": commit.time_ms,
        "lag": commit.lag,
    }


def _partition(row: PartitionRow, status: str) -> dict[str, Any]:
    commits = row.seen.commits
    owner, client_id = _owner(row)
    return {
        "topic": row.topic,
        "partition": row.partition,
        "owner": owner,
        "client_id": client_id,
        "status": status,
        "start": _offset(commits[0]) if commits else None,
        "end": _offset(commits[-1]) if commits else None,
        "current_lag": row.seen.lag,
        "complete": 1.0 if not row.seen.lag else len(commits) / WINDOW,
    }


def _group_status(
    cluster: str,
    group: str,
    status: str,
    partitions: list[dict[str, Any]],
    total_lag: int,
    *,
    shows_all: bool = True,
) -> dict[str, Any]:
    complete = sum(each["complete"] == 1.0 for each in partitions)
    return {
        "cluster": cluster,
        "group": group,
        "status": status,
        "complete": complete / len(partitions) if partitions else 0,
        "partitions": [each for each in partitions if shows_all or each["status"] != OK],
        "partition_count": len(partitions),
        "maxlag": max(partitions, key=lambda each: int(each["current_lag"]), default=None),
        "totallag": total_lag,
    }

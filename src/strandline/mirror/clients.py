"""The clients of a flow, with the settings that copying needs; a file's own settings win, except where they would lose
or repeat records.
"""

from __future__ import annotations

from typing import Any, Final

from strandline.client.admin.admin import Admin
from strandline.client.consumer.batch_consumer import BatchConsumer
from strandline.client.consumer.consumer import Consumer
from strandline.client.producer.producer import Producer
from strandline.client.world import ClientWorld
from strandline.mirror.config.settings import ClusterSettings, FlowSettings

# A batch as large as the source allows must fit; brokers refuse what is above message.max.bytes.
_REQUEST_BYTES_MAX: Final = 128 * 1024 * 1024
_FETCH_BYTES_MAX: Final = 64 * 1024 * 1024
_PARTITION_FETCH_BYTES: Final = 4 * 1024 * 1024
# How soon the work of a process that died is taken over by others.
_SESSION_TIMEOUT_MS: Final = 10_000
_HEARTBEAT_INTERVAL_MS: Final = 2_000


class FlowClients:
    """Makes clients for one flow; none of them is started."""

    def __init__(
        self,
        flow: FlowSettings,
        instance: str,
        world: ClientWorld | None,
        *,
        api_timeout_ms: int | None = None,
    ) -> None:
        """`api_timeout_ms` is how long calls may take, where the file does not say it."""
        self._api_timeout_ms = api_timeout_ms
        self._flow = flow
        self._instance = instance
        self._world = world

    @property
    def transactional_id(self) -> str:
        return f"{self._flow.group_id}-{self._instance}"

    @property
    def session_timeout_seconds(self) -> float:
        """How long a process that has ended is still a member of the flow's group."""
        own = self._flow.target.of("consumer")
        return int(own.get("session.timeout.ms", _SESSION_TIMEOUT_MS)) / 1000

    def admin(self, cluster: ClusterSettings) -> Admin:
        return Admin(self._settings(cluster, "admin", {}), world=self._world)

    def reader(self) -> BatchConsumer:
        """Reads committed records of the source. It has no group: positions come from the target."""
        settings = self._settings(
            self._flow.source,
            "consumer",
            {
                "max.partition.fetch.bytes": _PARTITION_FETCH_BYTES,
                "fetch.max.bytes": _FETCH_BYTES_MAX,
                "fetch.max.wait.ms": 500,
            },
        )
        # Records that the source deleted, or lost, must be told: no reset may pass over them.
        fixed = {
            "isolation.level": "read_committed",
            "auto.offset.reset": "none",
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
        }
        settings.pop("group.id", None)
        return BatchConsumer({**settings, **fixed}, world=self._world)

    def member(self) -> Consumer:
        """Returns the member of the flow's group at the target; it reads nothing."""
        settings = self._settings(
            self._flow.target,
            "consumer",
            {
                "session.timeout.ms": _SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": _HEARTBEAT_INTERVAL_MS,
                # New partitions are shared out as soon as they are found.
                "metadata.max.age.ms": round(1000 * self._flow.seconds("refresh.topics.interval.seconds")),
            },
        )
        fixed = {
            "group.id": self._flow.group_id,
            "group.instance.id": self._instance,
            "partition.assignment.strategy": "cooperative-sticky",
            "group.protocol": "classic",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": False,
        }
        return Consumer({**settings, **fixed}, world=self._world)

    def writer(self) -> Producer:
        """Returns the transactional producer at the target."""
        settings = self._settings(
            self._flow.target,
            "producer",
            {
                "max.request.size": _REQUEST_BYTES_MAX,
                "buffer.memory": _REQUEST_BYTES_MAX,
                "linger.ms": 0,
                # A transaction that begins while the markers of the last one are written is told to try again.
                "retry.backoff.ms": 20,
            },
        )
        fixed = {
            "transactional.id": self.transactional_id,
            "transaction.timeout.ms": self._flow.number("strandline.transaction.timeout.ms"),
            "enable.idempotence": True,
            "acks": "all",
        }
        return Producer({**settings, **fixed}, world=self._world, on_error=_ignored)

    def emitter(self, cluster: ClusterSettings) -> Producer:
        """Returns a plain producer, for heartbeats, checkpoints and offset syncs."""
        return Producer(self._settings(cluster, "producer", {"linger.ms": 5}), world=self._world)

    def target_reader(self) -> Consumer:
        """Reads committed records of the target, without a group."""
        return self._target_reader(reset="earliest")

    def journal_reader(self) -> Consumer:
        """Reads the journal without a group. A deleted position is an error here, because no entry may be skipped."""
        return self._target_reader(reset="none")

    def _target_reader(self, *, reset: str) -> Consumer:
        settings = self._settings(self._flow.target, "consumer", {})
        settings.pop("group.id", None)
        fixed = {
            "isolation.level": "read_committed",
            "auto.offset.reset": reset,
            "allow.auto.create.topics": False,
        }
        return Consumer({**settings, **fixed}, world=self._world)

    def _settings(self, cluster: ClusterSettings, kind: str, defaults: dict[str, Any]) -> dict[str, Any]:
        own = cluster.of(kind)
        own.setdefault("client.id", f"{self._flow.group_id}-{self._instance}")
        if self._api_timeout_ms is not None:
            key = "max.block.ms" if kind == "producer" else "default.api.timeout.ms"
            own.setdefault(key, self._api_timeout_ms)
            own.setdefault("request.timeout.ms", self._api_timeout_ms)
        return {**defaults, **own}


def _ignored(error: BaseException, count: int) -> None:
    """Leaves the errors of records to `commit_transaction`, which raises them."""

"""The settings that are checked: those of a producer, a consumer, a topic and its cluster, as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from strandline.client.config.config import ClientConfig
from strandline.client.errors import ConfigError
from strandline.config.broker_config import BrokerConfig
from strandline.config.dynamic import DynamicConfigs
from strandline.config.presets import REPLICATION_FACTOR
from strandline.config.topic_checks import check_topic
from strandline.config.values import InvalidConfig

MIN_ISR: Final = "min.insync.replicas"
PARTS: Final = ("producer", "consumer", "topic", "cluster")
_FACTOR_BY_DEFAULT: Final = 3
_BROKERS_MAX: Final = 6  # more of them change nothing for one partition
# Keys of clients that decide what failures do. Others, such as serializers and logins, are not needed to play them.
_CLIENT_PREFIXES: Final = (
    *("acks", "retries", "retry.", "request.timeout", "delivery.timeout", "enable.", "max.", "compression."),
    *("batch.", "linger.", "buffer.", "transactional.", "transaction.", "auto.", "isolation.", "group."),
    *("session.", "heartbeat.", "partition.assignment", "fetch.", "default.api", "reconnect.", "metadata."),
)
_CLUSTER_PREFIXES: Final = (
    *("replica.", "offsets.", "transaction", "group.", "broker.session", "broker.heartbeat", "unclean."),
    *(MIN_ISR, "auto.leader", "leader.imbalance", "log.flush", "producer.id", "flush."),
)
_GROUP: Final = "group"  # where none is said
_ADDRESS: Final = {"bootstrap.servers": "localhost:9092"}


class ImpossibleSettings(ValueError):
    """No cluster or client could have these settings, or they contradict each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSettings:
    """All that is needed to play failures; make it by `checked`."""

    producer: Mapping[str, str] = field(default_factory=dict)
    consumer: Mapping[str, str] = field(default_factory=dict)
    topic: Mapping[str, str] = field(default_factory=dict)  # with replication.factor
    cluster: Mapping[str, str] = field(default_factory=dict)
    brokers: int = 0  # of a live cluster; 0 if nothing says it
    racks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def part(self, name: str) -> Mapping[str, str]:
        settings: Mapping[str, str] = getattr(self, name)
        return settings

    def with_changes(self, changes: Mapping[str, Mapping[str, str]]) -> CheckedSettings:
        """Returns the settings with changes by part. Raises ImpossibleSettings if they do not fit the others."""
        parts = {name: {**self.part(name), **changes.get(name, {})} for name in PARTS}
        factor = changes.get("topic", {}).get(REPLICATION_FACTOR, "0")
        brokers = max(self.brokers, int(factor)) if self.brokers else 0  # a cluster can be given more of them
        return checked(
            replace(
                self,
                producer=parts["producer"],
                consumer=parts["consumer"],
                topic=parts["topic"],
                cluster=parts["cluster"],
                brokers=brokers,
            )
        )

    def of_cluster_only_what_is_played(self) -> CheckedSettings:
        """Returns the settings without a cluster's addresses, names and the rest that no failure asks about."""
        return replace(self, cluster=self.played_cluster)

    @property
    def replication_factor(self) -> int:
        given = self.topic.get(REPLICATION_FACTOR) or self.cluster.get("default.replication.factor")
        return int(given) if given else _FACTOR_BY_DEFAULT

    @property
    def min_isr(self) -> int:
        return int(self.topic.get(MIN_ISR) or self.cluster.get(MIN_ISR) or 1)

    @property
    def acks(self) -> str:
        return "all" if self.producer.get("acks", "all") in ("all", "-1") else self.producer["acks"]

    @property
    def simulated_brokers(self) -> int:
        return max(self.replication_factor, min(self.brokers or _FACTOR_BY_DEFAULT, _BROKERS_MAX))

    @property
    def played_producer(self) -> dict[str, str]:
        return _relevant(self.producer, _CLIENT_PREFIXES)

    @property
    def played_consumer(self) -> dict[str, str]:
        return _relevant(self.consumer, _CLIENT_PREFIXES)

    @property
    def played_topic(self) -> dict[str, str]:
        return {key: value for key, value in self.topic.items() if key != REPLICATION_FACTOR}

    @property
    def played_cluster(self) -> dict[str, str]:
        return _relevant(self.cluster, _CLUSTER_PREFIXES)


def _relevant(settings: Mapping[str, str], prefixes: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key.startswith(prefixes)}


def checked(settings: CheckedSettings) -> CheckedSettings:
    """Returns the settings if they are possible; raises ImpossibleSettings with a line that says why not."""
    try:
        ClientConfig.producer({**_ADDRESS, **settings.producer})
    except ConfigError as error:
        raise ImpossibleSettings(f"producer: {_told(error)}") from None
    try:
        ClientConfig.consumer({**_ADDRESS, "group.id": _GROUP, **settings.consumer})
    except ConfigError as error:
        raise ImpossibleSettings(f"consumer: {_told(error)}") from None
    config = _broker_config(settings.cluster)
    try:
        check_topic(DynamicConfigs(config), settings.played_topic, {})
    except InvalidConfig as error:
        raise ImpossibleSettings(f"topic: {error}") from None
    _check_replicas(settings)
    return settings


def _told(error: ConfigError) -> str:
    return str(error).removeprefix("INVALID_CONFIG: ")


def _broker_config(cluster: Mapping[str, str]) -> BrokerConfig:
    places = {
        "process.roles": "broker",
        "node.id": "1",
        "listeners": "PLAINTEXT://localhost:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "101@localhost:1",
        "log.dirs": "data",
    }
    try:
        config = BrokerConfig.from_strings({**places, **cluster})
    except InvalidConfig as error:
        raise ImpossibleSettings(f"cluster: {error}") from None
    for warning in config.warnings:
        raise ImpossibleSettings(f"cluster: {warning.message}")
    return config


def _check_replicas(settings: CheckedSettings) -> None:
    factor = settings.topic.get(REPLICATION_FACTOR, "1")
    if not factor.isdecimal() or int(factor) < 1:
        raise ImpossibleSettings(f"topic: {REPLICATION_FACTOR}={factor} is no number of replicas: 1 or more")
    if settings.min_isr > settings.replication_factor:
        raise ImpossibleSettings(
            f"topic: {MIN_ISR}={settings.min_isr} is above {REPLICATION_FACTOR}={settings.replication_factor}: no "
            "write with acks=all would ever be accepted"
        )
    if settings.brokers and settings.replication_factor > settings.brokers:
        raise ImpossibleSettings(
            f"topic: {REPLICATION_FACTOR}={settings.replication_factor} needs so many brokers, and there are "
            f"{settings.brokers}"
        )

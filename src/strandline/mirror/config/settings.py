"""MirrorMaker 2's properties as values: clusters, and the flows between them.

A setting of a flow is looked up as `east->west.topics`, then as `topics`, as MirrorMaker 2 does. `east.*` are settings
of the clients of a cluster; `east.consumer.*`, `east.producer.*` and `east.admin.*` those of one kind of client.

Defaults are MirrorMaker 2's, with these exceptions: topics, groups and checkpoints are looked at more often, and a
replication factor that nobody set is at most the number of the target's brokers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.client.config.kinds import is_of_another_kind
from strandline.mirror.config.replication_policy import POLICIES, ReplicationPolicy

_ARROW: Final = "->"
_ALIAS: Final = re.compile(r"[A-Za-z0-9_-]+")
_CLIENT_KINDS: Final = ("consumer", "producer", "admin")
_FLAGS: Final = {"true": True, "false": False}

DEFAULTS: Final[dict[str, str]] = {
    "enabled": "false",
    "topics": ".*",
    "topics.exclude": r".*[\-\.]internal, .*\.replica, __.*",
    "groups": ".*",
    "groups.exclude": r"console-consumer-.*, connect-.*, __.*",
    "config.properties.exclude": r"follower\.replication\.throttled\.replicas, "
    r"leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, log\.message\.timestamp\.before\.max\.ms, "
    r"log\.message\.timestamp\.after\.max\.ms, message\.timestamp\.type, unclean\.leader\.election\.enable, "
    r"min\.insync\.replicas",
    "emit.heartbeats.enabled": "true",
    "emit.heartbeats.interval.seconds": "1",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "10",
    "emit.offset-syncs.enabled": "true",
    "refresh.topics.enabled": "true",
    "refresh.topics.interval.seconds": "10",
    "refresh.groups.enabled": "true",
    "refresh.groups.interval.seconds": "10",
    "sync.topic.configs.enabled": "true",
    "sync.topic.configs.interval.seconds": "60",
    "sync.topic.acls.enabled": "true",
    "sync.topic.acls.interval.seconds": "60",
    "sync.group.offsets.enabled": "false",
    "sync.group.offsets.interval.seconds": "10",
    "replication.factor": "2",
    "heartbeats.topic.replication.factor": "3",
    "checkpoints.topic.replication.factor": "3",
    "offset-syncs.topic.replication.factor": "3",
    "offset-syncs.topic.location": "source",
    "offset.lag.max": "100",
    "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "replication.policy.separator": ".",
    "strandline.transaction.bytes": str(16 * 1024 * 1024),
    "strandline.transaction.timeout.ms": "15000",
    "strandline.bytes.per.second": "0",
    "strandline.journal.records": "10000",
}
# Settings of MirrorMaker 2 that mean nothing here: there is no Connect worker, and nothing is sampled.
_WITHOUT_EFFECT: Final = frozenset(
    {
        *("tasks.max", "admin.timeout.ms", "consumer.poll.timeout.ms", "header.converter"),
        *("name", "connector.class", "dedicated.mode.enable.internal.rest", "listeners", "metric.reporters"),
        *("key.converter", "value.converter", "exactly.once.source.support", "topic.filter.class"),
        *(
            "group.filter.class",
            "config.property.filter.class",
            "use.incremental.alter.configs",
            "heartbeats.replication.enabled",
        ),
        *("replication.policy.internal.topic.separator.enabled", "use.defaults.from", "provider.name.format"),
        *(
            "config.storage.replication.factor",
            "offset.storage.replication.factor",
            "status.storage.replication.factor",
        ),
    }
)


class MirrorConfigError(ValueError):
    """The file cannot be meant; the text says what to change."""


class Patterns:
    """A comma-separated list of names and regular expressions, each of which must match a whole name."""

    def __init__(self, text: str, key: str) -> None:
        self._patterns = []
        for each in filter(None, (part.strip() for part in text.split(","))):
            try:
                self._patterns.append(re.compile(each))
            except re.error as error:
                raise MirrorConfigError(f"{key}: {each!r} is no regular expression: {error}") from error

    def match(self, name: str) -> bool:
        return any(each.fullmatch(name) for each in self._patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """A cluster by its alias, and the settings of the clients that connect to it."""

    alias: str
    settings: Mapping[str, str]

    def of(self, kind: str) -> dict[str, Any]:
        """Returns the settings for one kind of client: consumer, producer or admin. Those that only another kind has
        are left out.
        """
        prefixes = tuple(f"{each}." for each in _CLIENT_KINDS)
        shared = {
            key: value
            for key, value in self.settings.items()
            if not key.startswith(prefixes) and not is_of_another_kind(key, kind)
        }
        own = {
            key[len(kind) + 1 :]: value for key, value in self.settings.items() if key.startswith(f"{kind}.")
        }
        return shared | own


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """The settings of one flow."""

    source: ClusterSettings
    target: ClusterSettings
    values: Mapping[str, str]  # those that the file has, without the flow's prefix
    policy: ReplicationPolicy
    topics: Patterns
    topics_exclude: Patterns
    groups: Patterns
    groups_exclude: Patterns
    config_properties_exclude: Patterns
    suffix: str = ""  # of the name, for copies besides those of the flow itself

    @property
    def name(self) -> str:
        return f"{self.source.alias}{_ARROW}{self.target.alias}{self.suffix}"

    @property
    def group_id(self) -> str:
        """The group at the target that has the flow's progress, and whose members share its work."""
        return f"strandline-mirror-{self.name}"

    def text(self, key: str) -> str:
        return self.values.get(key, DEFAULTS[key])

    def is_set(self, key: str) -> bool:
        return key in self.values

    def flag(self, key: str) -> bool:
        value = _FLAGS.get(self.text(key).strip().lower())
        if value is None:
            raise MirrorConfigError(f"{self.name}: {key} is {self.text(key)!r}; it must be true or false")
        return value

    def number(self, key: str) -> int:
        text = self.text(key).strip()
        if not text.isdecimal():
            raise MirrorConfigError(f"{self.name}: {key} is {text!r}; it must be a whole number")
        return int(text)

    def seconds(self, key: str) -> float:
        """Returns an interval in seconds. MirrorMaker 2 takes whole seconds only; fractions serve tests."""
        try:
            value = float(self.text(key))
        except ValueError:
            value = -1.0
        if not 0 < value < 1e9:
            raise MirrorConfigError(
                f"{self.name}: {key} is {self.text(key)!r}; it must be a number of seconds"
            )
        return value

    @property
    def offset_syncs_are_at_source(self) -> bool:
        location = self.text("offset-syncs.topic.location").strip().lower()
        if location not in ("source", "target"):
            raise MirrorConfigError(
                f"{self.name}: offset-syncs.topic.location is {location!r}; it must be source or target"
            )
        return location == "source"

    def is_mirrored(self, topic: str) -> bool:
        """True if the flow copies this topic of the source."""
        policy = self.policy
        is_wanted = self.topics.match(topic) and not self.topics_exclude.match(topic)
        is_wanted = is_wanted or policy.is_heartbeats_topic(topic)
        return (
            is_wanted
            and not policy.is_internal_topic(topic)
            and not policy.is_cycle(topic, self.target.alias)
        )

    def is_mirrored_group(self, group: str) -> bool:
        if group.startswith("strandline-mirror-"):
            return False
        return self.groups.match(group) and not self.groups_exclude.match(group)

    def target_topic(self, topic: str) -> str:
        return self.policy.remote_topic(self.source.alias, topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """The clusters and the flows that are enabled; `unknown` are keys of the file that nothing reads."""

    clusters: Mapping[str, ClusterSettings]
    flows: tuple[FlowSettings, ...]
    unknown: tuple[str, ...]

    def flow(self, name: str | None) -> FlowSettings:
        """Returns the flow of this name, or the only one."""
        names = ", ".join(each.name for each in self.flows)
        if name is None:
            if len(self.flows) > 1:
                raise MirrorConfigError(f"the file has several flows: name one with --flow ({names})")
            return self.flows[0]
        for each in self.flows:
            if each.name == name:
                return each
        raise MirrorConfigError(f"there is no flow {name}: the file enables {names}")


def mirror_settings(properties: Mapping[str, str]) -> MirrorSettings:
    """Returns the settings that these properties mean. Raises MirrorConfigError."""
    aliases = [each.strip() for each in properties.get("clusters", "").split(",") if each.strip()]
    if len(aliases) < 2:
        raise MirrorConfigError("clusters must name two clusters or more, such as clusters=east,west")
    for alias in aliases:
        if not _ALIAS.fullmatch(alias):
            raise MirrorConfigError(f"clusters: {alias!r} is no alias; letters, digits, - and _ may be in it")
    clusters = {alias: _cluster(alias, properties) for alias in aliases}
    flow_names = sorted({name for key in properties if (name := _flow_of(key, clusters)) is not None})
    shared = {key: value for key, value in properties.items() if key in DEFAULTS and key != "enabled"}
    flows = tuple(
        flow for name in flow_names if (flow := _flow(name, clusters, properties, shared)).flag("enabled")
    )
    if not flows:
        pairs = f"{aliases[0]}{_ARROW}{aliases[1]}"
        raise MirrorConfigError(f"no flow is enabled: set {pairs}.enabled=true, or the other way round")
    _check_loops(flows)
    return MirrorSettings(clusters=clusters, flows=flows, unknown=_unknown(properties, clusters))


def _cluster(alias: str, properties: Mapping[str, str]) -> ClusterSettings:
    prefix = f"{alias}."
    settings = {key[len(prefix) :]: value for key, value in properties.items() if key.startswith(prefix)}
    if not settings.get("bootstrap.servers"):
        raise MirrorConfigError(f"{alias}.bootstrap.servers is missing: where are the brokers of {alias}?")
    # These are of MirrorMaker 2, for topics that it makes on this cluster, and of no client.
    own = {
        key: value for key, value in settings.items() if key not in DEFAULTS and key not in _WITHOUT_EFFECT
    }
    return ClusterSettings(alias=alias, settings=own)


def _flow_of(key: str, clusters: Mapping[str, ClusterSettings]) -> str | None:
    """Returns the flow that a key names; None if it names none. Raises for aliases that `clusters` does not have."""
    if _ARROW not in key:
        return None
    source, _, rest = key.partition(_ARROW)
    target = next((each for each in clusters if rest.startswith(f"{each}.")), rest.partition(".")[0])
    for alias in (source, target):
        if alias not in clusters:
            raise MirrorConfigError(f"{key}: there is no cluster {alias}; clusters has {', '.join(clusters)}")
    if source == target:
        raise MirrorConfigError(f"{key}: a cluster cannot be mirrored to itself")
    return f"{source}{_ARROW}{target}"


def _flow(
    name: str,
    clusters: Mapping[str, ClusterSettings],
    properties: Mapping[str, str],
    shared: Mapping[str, str],
) -> FlowSettings:
    prefix = f"{name}."
    own = {key[len(prefix) :]: value for key, value in properties.items() if key.startswith(prefix)}
    values = {**shared, **own}
    for old, new in (("topics.blacklist", "topics.exclude"), ("groups.blacklist", "groups.exclude")):
        if old in values:
            values.setdefault(new, values[old])
    source, _, target = name.partition(_ARROW)

    def patterns(key: str) -> Patterns:
        return Patterns(values.get(key, DEFAULTS[key]), f"{name}.{key}")

    chosen = values.get("replication.policy.class", DEFAULTS["replication.policy.class"]).strip()
    if chosen not in POLICIES:
        raise MirrorConfigError(
            f"{name}: replication.policy.class {chosen} is not known; there are {', '.join(POLICIES)}"
        )
    separator = values.get("replication.policy.separator", DEFAULTS["replication.policy.separator"])
    flow = FlowSettings(
        source=clusters[source],
        target=clusters[target],
        values=values,
        policy=POLICIES[chosen](separator),
        topics=patterns("topics"),
        topics_exclude=patterns("topics.exclude"),
        groups=patterns("groups"),
        groups_exclude=patterns("groups.exclude"),
        config_properties_exclude=patterns("config.properties.exclude"),
    )
    _check_values(flow)
    return flow


def _check_values(flow: FlowSettings) -> None:
    """Has every value read once, so that a mistake is told before anything starts."""
    for key, default in DEFAULTS.items():
        if default in _FLAGS:
            flow.flag(key)
        elif key.endswith(".seconds"):
            flow.seconds(key)
        elif default.isdecimal():
            flow.number(key)
    _ = flow.offset_syncs_are_at_source


def _check_loops(flows: Iterable[FlowSettings]) -> None:
    """Raises if topics that keep their names would go round in a circle: records would multiply for ever."""
    following: dict[str, list[str]] = {}
    for flow in flows:
        if not flow.policy.can_track_source:
            following.setdefault(flow.source.alias, []).append(flow.target.alias)
    for start in following:
        paths = [[start]]
        while paths:
            path = paths.pop()
            for target in following.get(path[-1], ()):
                if target == start:
                    raise MirrorConfigError(
                        f"records would go round in a circle: {_ARROW.join([*path, target])} with topics that keep "
                        "their names; use DefaultReplicationPolicy, or disable one of these flows"
                    )
                if target not in path:
                    paths.append([*path, target])


def _unknown(properties: Mapping[str, str], clusters: Mapping[str, ClusterSettings]) -> tuple[str, ...]:
    known = DEFAULTS.keys() | _WITHOUT_EFFECT | {"clusters", "topics.blacklist", "groups.blacklist"}
    unknown = []
    for key in properties:
        flow = _flow_of(key, clusters)
        own = key[len(flow) + 1 :] if flow is not None else key
        is_of_cluster = flow is None and any(key.startswith(f"{alias}.") for alias in clusters)
        is_of_clients = own.startswith(
            tuple(f"{kind}." for kind in (*_CLIENT_KINDS, "source", "target", "config.providers"))
        )
        if own not in known and not is_of_cluster and not is_of_clients:
            unknown.append(key)
    return tuple(unknown)

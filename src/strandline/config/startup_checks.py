"""Rules between keys that must hold before a node starts, and between broker keys that change while it runs.

The rules are those of Apache Kafka's KafkaConfig, GroupCoordinatorConfig and ShareGroupConfig; the messages say what to
change. A rule that Kafka only logs is a warning here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from strandline.config.addresses import is_host, parse_voter
from strandline.config.java import INT_MAX, INT_MIN, parse_integer
from strandline.config.listeners import EVERY_INTERFACE, parse_map
from strandline.config.parsed_config import ParsedConfig
from strandline.config.values import InvalidConfig, render

Warnings = Iterator[tuple[str, str]]

# Pairs whose first must not exceed the second.
_ORDERED: Final[tuple[tuple[str, str], ...]] = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    ("group.share.max.size", "group.share.max.share.sessions"),
)
# Settings whose value must lie between those of their .min. and .max. twins.
_BOUNDED: Final[tuple[tuple[str, str], ...]] = (
    *((f"group.{kind}.", "session.timeout.ms") for kind in ("consumer", "share", "streams")),
    *((f"group.{kind}.", "heartbeat.interval.ms") for kind in ("consumer", "share", "streams")),
    *((f"group.{kind}.", "assignment.interval.ms") for kind in ("consumer", "share", "streams")),
    ("group.share.", "delivery.count.limit"),
    ("group.share.", "partition.max.record.locks"),
    ("group.share.", "record.lock.duration.ms"),
)
_DEDUPE_BUFFER_MIN = 1024 * 1024


def run(config: ParsedConfig) -> Warnings:
    """Raises InvalidConfig for the first rule that is broken, and returns the warnings."""
    _check_identity(config)
    _check_log(config)
    _check_order(config)
    _check_groups(config)
    _check_voters(config)
    _check_roles(config)
    _check_broker_listeners(config)
    _check_connections(config)
    return _warnings(config)


def _require(holds: bool, config: ParsedConfig, key: str, message: str) -> None:
    if not holds:
        raise InvalidConfig(key, config.static.get(key, render(config.value(key))), message)


def _check_identity(config: ParsedConfig) -> None:
    same = config.int("node.id") == config.int("broker.id")
    _require(same, config, "node.id", "node.id and broker.id must be the same number; remove broker.id")


def _check_log(config: ParsedConfig) -> None:
    roll_ms = config.optional_int("log.roll.ms")
    _require(roll_ms is None or roll_ms >= 1, config, "log.roll.ms", "log.roll.ms must be at least 1")
    jitter_ms = config.optional_int("log.roll.jitter.ms")
    rule = "log.roll.jitter.ms must be at least 0"
    _require(jitter_ms is None or jitter_ms >= 0, config, "log.roll.jitter.ms", rule)
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        retention = config.optional_int(name)
        if retention is not None:
            _require(
                retention != 0, config, name, f"{name} must be at least 1, or -1 to keep records forever"
            )
            break
    _require(
        bool(config.log_dirs), config, "log.dirs", "log.dirs or log.dir must name at least one directory"
    )
    threads = config.int("log.cleaner.threads")
    _require(threads > 0, config, "log.cleaner.threads", "log.cleaner.threads must be at least 1")
    rule = f"log.cleaner.dedupe.buffer.size must be more than 1 MiB for each of {threads} log.cleaner.threads"
    enough = config.int("log.cleaner.dedupe.buffer.size") // threads > _DEDUPE_BUFFER_MIN
    _require(enough, config, "log.cleaner.dedupe.buffer.size", rule)
    _check_cordoned(config)


def _check_cordoned(config: ParsedConfig) -> None:
    cordoned = config.strings("cordoned.log.dirs")
    key = "cordoned.log.dirs"
    if not config.is_broker or cordoned == ("*",):
        return
    _require("*" not in cordoned, config, key, f"{key} must be * alone, or a list of directories")
    unknown = [each for each in cordoned if each not in config.log_dirs]
    _require(
        not unknown,
        config,
        key,
        f"{key} must only name entries of log.dirs; it also has {', '.join(unknown)}",
    )


def _check_order(config: ParsedConfig) -> None:
    for smaller, larger in _ORDERED:
        holds = config.int(smaller) <= config.int(larger)
        _require(holds, config, smaller, f"{smaller} must not exceed {larger} ({config.int(larger)})")


def _check_groups(config: ParsedConfig) -> None:
    for prefix, setting in _BOUNDED:
        key, least, most = prefix + setting, f"{prefix}min.{setting}", f"{prefix}max.{setting}"
        bounds = config.int(least), config.int(most)
        _require(bounds[0] <= bounds[1], config, least, f"{least} must not exceed {most} ({bounds[1]})")
        rule = f"{key} must lie between {least} ({bounds[0]}) and {most} ({bounds[1]})"
        _require(bounds[0] <= config.int(key) <= bounds[1], config, key, rule)
    for kind in ("consumer", "share", "streams"):
        key, limit = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        holds = config.int(key) < config.int(limit)
        _require(holds, config, key, f"{key} must be less than {limit} ({config.int(limit)})")
    key = "group.share.assignors"
    _require(len(config.strings(key)) == 1, config, key, f"{key} must name exactly one assignor")
    key = "group.coordinator.rebalance.protocols"
    _require("classic" in config.strings(key), config, key, f"{key} must contain classic")


def _voter_ids(config: ParsedConfig) -> list[int]:
    voters = map(parse_voter, config.strings("controller.quorum.voters"))
    return [voter[0] for voter in voters if voter is not None]


def _check_voters(config: ParsedConfig) -> None:
    voters, key = _voter_ids(config), "controller.quorum.voters"
    if not voters and not config.strings("controller.quorum.bootstrap.servers"):
        rule = "controller.quorum.voters or controller.quorum.bootstrap.servers must name the controllers"
        raise InvalidConfig("controller.quorum.bootstrap.servers", None, rule, "list of host:port")
    if config.is_controller:
        holds = not voters or config.node_id in voters
        _require(holds, config, key, f"{key} must contain this controller, whose node.id is {config.node_id}")
    else:
        rule = f"{key} must not contain node.id {config.node_id}, because its process.roles is only broker"
        _require(config.node_id not in voters, config, key, rule)
        key = "controller.quorum.auto.join.enable"
        rule = f"{key} needs the role controller in process.roles"
        _require(not config.flag(key), config, key, rule)


def _check_roles(config: ParsedConfig) -> None:
    names, key = config.strings("controller.listener.names"), "controller.listener.names"
    here = [listener.name for listener in config.listeners]
    if not config.is_controller:
        strays = [name for name in names if name in here]
        rule = f"{key} must name no entry of listeners while process.roles is only broker; remove "
        _require(not strays, config, key, rule + f"{', '.join(strays)} from listeners")
        for name in names:
            rule = f"{key} has {name}, whose protocol is unknown; add it to listener.security.protocol.map"
            _require(name.upper() in config.protocols, config, key, rule)
        return
    missing = [name for name in names if name not in here]
    rule = f"{key} must only name entries of listeners, which has {', '.join(here)}, not {', '.join(missing)}"
    _require(not missing, config, key, rule)
    if not config.is_broker:
        others = [name for name in here if name not in names]
        rule = f"listeners must only have {key} while process.roles is only controller; it also has "
        _require(not others, config, "listeners", rule + ", ".join(others))
        chosen = config.optional_text("inter.broker.listener.name")
        rule = f"{key} must not contain inter.broker.listener.name ({chosen})"
        _require(chosen is None or chosen.upper() not in names, config, key, rule)


def _check_broker_listeners(config: ParsedConfig) -> None:
    advertised = [listener.name for listener in config.advertised_listeners]
    here = [listener.name for listener in config.listeners]
    name, key = config.inter_broker_listener_name, "inter.broker.listener.name"
    if config.value(key) is not None:
        rule = f"give only one of {key} and security.inter.broker.protocol"
        _require("security.inter.broker.protocol" not in config.static, config, key, rule)
        rule = f"{key} is {name}, whose protocol is unknown; add it to listener.security.protocol.map"
        _require(name in config.protocols, config, key, rule)
    if config.is_broker:
        rule = "listeners must have one that is not in controller.listener.names, for clients"
        _require(bool(advertised), config, "listeners", rule)
        rule = f"{key} must be one of the advertised listeners ({', '.join(advertised)}), not {name}"
        _require(name in advertised, config, key, rule)
        strays = [each for each in advertised if each not in here]
        rule = f"advertised.listeners must only name entries of listeners ({', '.join(here)})"
        _require(not strays, config, "advertised.listeners", f"{rule}; it also has {', '.join(strays)}")
        _check_inter_broker_mechanism(config, name)
    for listener in (*config.advertised_listeners, *config.advertised_controller_listeners):
        rule = f"clients cannot connect to {EVERY_INTERFACE}; give {listener.name} a real host in advertised.listeners"
        _require(listener.host != EVERY_INTERFACE, config, "advertised.listeners", rule)
    known = {*here, *config.strings("controller.listener.names")}
    for early in filter(None, config.strings("early.start.listeners")):
        rule = f"early.start.listeners has {early}, which neither listeners nor controller.listener.names has"
        _require(early in known, config, "early.start.listeners", rule)


def _check_inter_broker_mechanism(config: ParsedConfig, listener: str) -> None:
    if not config.protocols[listener].startswith("SASL"):
        return
    key = "sasl.enabled.mechanisms"
    own = config.static.get(f"listener.name.{listener.lower()}.{key}")
    mechanisms = config.strings(key) if own is None else tuple(part.strip() for part in own.split(","))
    mechanism = config.text("sasl.mechanism.inter.broker.protocol")
    rule = f"{key} must contain sasl.mechanism.inter.broker.protocol ({mechanism})"
    _require(mechanism in mechanisms, config, key, rule)


def _check_connections(config: ParsedConfig) -> None:
    queued, key = config.int("queued.max.request.bytes"), "queued.max.request.bytes"
    largest = config.int("socket.request.max.bytes")
    rule = f"{key} must be at least socket.request.max.bytes ({largest}), or -1"
    _require(queued <= 0 or queued >= largest, config, key, rule)
    key = "max.connections.per.ip.overrides"
    overrides = parse_map(key, config.text(key))
    for host, count in overrides.items():
        _require(is_host(host), config, key, f"{key} has {host}, which is no host")
        number = parse_integer(count, INT_MIN, INT_MAX)
        _require(number is not None, config, key, f"{key} gives {host} the number {count}, which is none")
    holds = config.int("max.connections.per.ip") > 0 or bool(overrides)
    rule = f"max.connections.per.ip may only be 0 where {key} makes exceptions"
    _require(holds, config, "max.connections.per.ip", rule)
    idle_ms, key = config.int("connections.max.idle.ms"), "connection.failed.authentication.delay.ms"
    rule = f"{key} must be less than connections.max.idle.ms ({idle_ms})"
    _require(idle_ms < 0 or config.int(key) < idle_ms, config, key, rule)


def _warnings(config: ParsedConfig) -> Warnings:
    heartbeat, session = "broker.heartbeat.interval.ms", "broker.session.timeout.ms"
    if config.int(heartbeat) * 2 > config.int(session):
        yield (
            heartbeat,
            f"{heartbeat} should be at most half of {session}, or a late heartbeat fences the broker",
        )
    if config.is_controller or not config.is_broker:
        return
    names = config.strings("controller.listener.names")
    if len(names) > 1:
        yield (
            "controller.listener.names",
            f"a broker only uses the first of controller.listener.names: {names[0]}",
        )
    for key in ("create.topic.policy.class.name", "alter.config.policy.class.name"):
        if key in config.originals:
            yield key, f"{key} has no effect on a broker; give it to the controllers"
    for key in ("num.partitions", "default.replication.factor"):
        if key in config.originals:
            yield key, f"{key} belongs to the controllers: Kafka will ignore it on brokers from 5.0 on"

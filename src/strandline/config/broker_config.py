"""The configuration a node is started with: typed, checked, and immutable.

`BrokerConfig.from_strings` takes what server.properties or a command line says. It refuses what Apache Kafka
refuses, each time with the key, the value and what would be right, and it remembers as warnings what only
looks wrong: an unknown key above all, which is likely a slip of the pen.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from strandline.config import startup_checks
from strandline.config.addresses import parse_voter
from strandline.config.definition import Required
from strandline.config.keys.broker import BROKER_KEYS, DYNAMIC_ONLY_KEYS, find_key
from strandline.config.keys.topic import SYNONYMS, TOPIC_KEYS
from strandline.config.listeners import EVERY_INTERFACE, Listener, parse_listeners, protocol_map
from strandline.config.typed_values import TypedValues, nearest
from strandline.config.values import InvalidConfig, parse
from strandline.config.variables import advice_on_variables

BROKER: Final = "broker"
CONTROLLER: Final = "controller"

# What a key begins with that a plug-in reads itself, so that nobody here can know its name.
_PLUGIN_PREFIXES = ("config.providers.",)
_PLUGIN_PREFIX_KEYS = ("remote.log.storage.manager.impl.prefix", "remote.log.metadata.manager.impl.prefix")


class ConfigWarning(NamedTuple):
    """Something a person should look at, which does not keep the node from starting."""

    key: str
    message: str


class BrokerConfig(TypedValues):
    __slots__ = (
        "advertised_controller_listeners",
        "advertised_listeners",
        "given",
        "inter_broker_listener_name",
        "listeners",
        "log_dirs",
        "protocols",
        "static",
        "warnings",
    )

    given: Mapping[str, str]
    """What the user set, as it was written but for variables, which are filled in."""
    static: Mapping[str, str]
    """The same with node.id and broker.id standing for each other: what DescribeConfigs calls static."""
    warnings: tuple[ConfigWarning, ...]
    listeners: tuple[Listener, ...]
    """Every socket to open, controller listeners included."""
    advertised_listeners: tuple[Listener, ...]
    """Where clients and brokers reach this broker: advertised.listeners, or else listeners."""
    advertised_controller_listeners: tuple[Listener, ...]
    inter_broker_listener_name: str
    log_dirs: tuple[str, ...]
    protocols: Mapping[str, str]
    """The protocol of each listener name, whether or not there is a listener of that name here."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = MappingProxyType(dict(given))
        self.static = MappingProxyType(_with_node_id(given))
        self._values = {}
        for key in BROKER_KEYS.values():
            if key.name in self.static:
                self._values[key.name] = parse(key, self.static[key.name])
            elif isinstance(key.default, Required):
                message = f'Missing required configuration "{key.name}" which has no default value.'
                raise InvalidConfig(key.name, None, message, key.allowed())
            else:
                self._values[key.name] = key.default
        warnings = [warning for name in self.given if (warning := self._look_at_foreign(name)) is not None]
        for name, text in self.given.items():
            warnings.extend(ConfigWarning(name, advice) for advice in advice_on_variables(text, self.given))
        self.log_dirs = self.strings("log.dirs") or self.strings("log.dir")
        self._read_listeners()
        warnings.extend(ConfigWarning(*found) for found in startup_checks.run(self))
        self.warnings = tuple(warnings)

    def __setattr__(self, name: str, value: object) -> None:
        assert not hasattr(self, "warnings"), "the configuration of a node does not change once it is read"
        object.__setattr__(self, name, value)

    @classmethod
    def from_strings(cls, given: Mapping[str, str]) -> BrokerConfig:
        """The configuration of a node, checked; raises InvalidConfig."""
        return cls(given)

    @property
    def node_id(self) -> int:
        return self.int("node.id")

    @property
    def is_broker(self) -> bool:
        return BROKER in self.strings("process.roles")

    @property
    def is_controller(self) -> bool:
        return CONTROLLER in self.strings("process.roles")

    @property
    def controller_listeners(self) -> tuple[Listener, ...]:
        names = self.strings("controller.listener.names")
        return tuple(listener for listener in self.listeners if listener.name in names)

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        names = self.strings("controller.listener.names")
        return tuple(listener for listener in self.listeners if listener.name not in names)

    def _look_at_foreign(self, name: str) -> ConfigWarning | None:
        """Check the value of a key given for one listener; warn of a key that nobody knows."""
        if name in BROKER_KEYS:
            return None
        key = find_key(name)
        if key is not None and name not in DYNAMIC_ONLY_KEYS:
            parse(key._replace(name=name), self.given[name])
            return None
        prefixes = _PLUGIN_PREFIXES + tuple(self.text(prefix) for prefix in _PLUGIN_PREFIX_KEYS)
        return None if name.startswith(prefixes) else ConfigWarning(name, _advice(name))

    def _read_listeners(self) -> None:
        controller_names = self.strings("controller.listener.names")
        entries = self.strings("listeners")
        protocols = protocol_map(
            self.text("listener.security.protocol.map"),
            explicit="listener.security.protocol.map" in self.static,
            controller_names=controller_names,
            listeners=entries,
        )
        self.protocols = MappingProxyType(protocols)
        self.listeners = parse_listeners("listeners", entries, protocols, distinct_ports=True)
        told = self.listeners
        if self.value("advertised.listeners") is not None:
            entries = self.strings("advertised.listeners")
            told = parse_listeners("advertised.listeners", entries, protocols, distinct_ports=False)
        self.advertised_listeners = tuple(each for each in told if each.name not in controller_names)
        self.advertised_controller_listeners = self._advertise_controllers(told)
        name = self.optional_text("inter.broker.listener.name")
        self.inter_broker_listener_name = (name or self.text("security.inter.broker.protocol")).upper()

    def _advertise_controllers(self, told: tuple[Listener, ...]) -> tuple[Listener, ...]:
        """In the order of controller.listener.names. Where a host is open, the list of voters may know it."""
        advertised = []
        for place, name in enumerate(self.strings("controller.listener.names")):
            found = [each for each in told if each.name == name] or [
                each for each in self.listeners if each.name == name
            ]
            for listener in found[:1]:
                if listener.host in ("", EVERY_INTERFACE) and listener in self.listeners:
                    listener = self._voter_address(listener) if place == 0 else listener._replace(host="")
                advertised.append(listener)
        return tuple(advertised)

    def _voter_address(self, listener: Listener) -> Listener:
        for entry in self.strings("controller.quorum.voters"):
            voter = parse_voter(entry)
            if voter is not None and voter[0] == self.node_id:
                return listener._replace(host=voter[1], port=voter[2])
        return listener._replace(host="")


def _with_node_id(given: Mapping[str, str]) -> dict[str, str]:
    static = dict(given)
    if "node.id" in static:
        static.setdefault("broker.id", static["node.id"])
    elif "broker.id" in static:
        static["node.id"] = static["broker.id"]
    return static


def _advice(name: str) -> str:
    if name in DYNAMIC_ONLY_KEYS:
        return f"{name} can only be set while the broker runs, with kafka-configs; it is ignored here"
    if name in TOPIC_KEYS:
        synonyms = SYNONYMS.get(name)
        default = f"; its default for all topics is {synonyms[0].name}" if synonyms else ""
        return f"{name} is a key of topics, not of brokers{default}"
    return f"{name} is no key that Strandline knows{nearest(name, BROKER_KEYS)}"

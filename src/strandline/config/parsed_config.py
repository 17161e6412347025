"""The settings of a node's file: typed and with listeners parsed, not yet checked.

`broker_config.BrokerConfig` adds the checks between keys. They are rules over this value, in `startup_checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from strandline.config.addresses import parse_voter
from strandline.config.definition import Required
from strandline.config.keys.broker import BROKER_KEYS, DYNAMIC_ONLY_KEYS, find_key
from strandline.config.listeners import EVERY_INTERFACE, Listener, parse_listeners, protocol_map
from strandline.config.typed_values import TypedValues
from strandline.config.values import InvalidConfig, parse

BROKER: Final = "broker"
CONTROLLER: Final = "controller"


class ParsedConfig(TypedValues):
    """Every broker key with its value, and the listeners of the node."""

    __slots__ = (
        "advertised_controller_listeners",
        "advertised_listeners",
        "inter_broker_listener_name",
        "listeners",
        "log_dirs",
        "originals",
        "protocols",
        "static",
    )

    originals: Mapping[str, str]
    """The user's settings as they were written, with variables replaced."""
    static: Mapping[str, str]
    """The same with both node.id and broker.id: the static configs of DescribeConfigs."""
    listeners: tuple[Listener, ...]
    """The sockets to open, those of controller listeners included."""
    advertised_listeners: tuple[Listener, ...]
    """The addresses of this broker for clients and brokers: advertised.listeners, or else listeners."""
    advertised_controller_listeners: tuple[Listener, ...]
    inter_broker_listener_name: str
    log_dirs: tuple[str, ...]
    protocols: Mapping[str, str]
    """The protocol of each listener name, also of names without a listener on this node."""

    def __init__(self, originals: Mapping[str, str]) -> None:
        self.originals = MappingProxyType(dict(originals))
        self.static = MappingProxyType(_with_node_id(originals))
        self._values = {}
        for key in BROKER_KEYS.values():
            if key.name in self.static:
                self._values[key.name] = parse(key, self.static[key.name])
            elif isinstance(key.default, Required):
                message = f'Missing required configuration "{key.name}" which has no default value.'
                raise InvalidConfig(key.name, None, message, key.allowed())
            else:
                self._values[key.name] = key.default
        self._parse_listener_overrides()
        self.log_dirs = self.strings("log.dirs") or self.strings("log.dir")
        self._read_listeners()

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

    def _parse_listener_overrides(self) -> None:
        """Checks the values of keys that are set for one listener, as `listener.name.<name>.<key>`."""
        for name, text in self.originals.items():
            key = find_key(name)
            if name not in BROKER_KEYS and key is not None and name not in DYNAMIC_ONLY_KEYS:
                parse(key._replace(name=name), text)

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
        advertised = self.listeners
        if self.value("advertised.listeners") is not None:
            entries = self.strings("advertised.listeners")
            advertised = parse_listeners("advertised.listeners", entries, protocols, distinct_ports=False)
        self.advertised_listeners = tuple(each for each in advertised if each.name not in controller_names)
        self.advertised_controller_listeners = self._advertise_controllers(advertised)
        name = self.optional_text("inter.broker.listener.name")
        self.inter_broker_listener_name = (name or self.text("security.inter.broker.protocol")).upper()

    def _advertise_controllers(self, advertised: tuple[Listener, ...]) -> tuple[Listener, ...]:
        """Returns the controllers' advertised listeners, in the order of controller.listener.names. The host of a
        listener on every interface is taken from the list of voters."""
        controllers = []
        for place, name in enumerate(self.strings("controller.listener.names")):
            found = [each for each in advertised if each.name == name] or [
                each for each in self.listeners if each.name == name
            ]
            for listener in found[:1]:
                if listener.host in ("", EVERY_INTERFACE) and listener in self.listeners:
                    listener = self._voter_address(listener) if place == 0 else listener._replace(host="")
                controllers.append(listener)
        return tuple(controllers)

    def _voter_address(self, listener: Listener) -> Listener:
        for entry in self.strings("controller.quorum.voters"):
            voter = parse_voter(entry)
            if voter is not None and voter[0] == self.node_id:
                return listener._replace(host=voter[1], port=voter[2])
        return listener._replace(host="")


def _with_node_id(originals: Mapping[str, str]) -> dict[str, str]:
    static = dict(originals)
    if "node.id" in static:
        static.setdefault("broker.id", static["node.id"])
    elif "broker.id" in static:
        static["node.id"] = static["broker.id"]
    return static

"""The addresses on which a node listens and those that it advertises: listeners, advertised.listeners and the protocol
map.

A listener's name is written in capitals wherever it is compared. An empty host means every interface. The address that
is advertised in its place, and in the place of port 0, is only known once the socket is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from strandline.config import addresses
from strandline.config.values import InvalidConfig

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
PROTOCOLS: Final[dict[str, Protocol]] = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
}
EVERY_INTERFACE: Final = "0.0.0.0"
_PORT_MAX = 2**16 - 1
_MAP_KEY = "listener.security.protocol.map"


class Listener(NamedTuple):
    name: str
    host: str
    port: int
    protocol: Protocol


def parse_map(key: str, text: str) -> dict[str, str]:
    """Returns the pairs of name:value,name:value; the last colon separates a pair, so a name may be an IPv6 address."""
    pairs: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, value = pair.rpartition(":")
        if not colon:
            raise InvalidConfig(
                key, text, f"{key} has an entry without a colon: {pair}", "name:value,name:value"
            )
        pairs[name.strip()] = value.strip()
    return pairs


def protocol_map(
    text: str, *, explicit: bool, controller_names: Sequence[str], listeners: Iterable[str]
) -> dict[str, Protocol]:
    """Returns the protocol of each listener name.

    If the map is not set and no setting needs TLS or SASL, the controllers' listeners are plaintext too, so that a
    small cluster needs no map.
    """
    protocols: dict[str, Protocol] = {}
    for name, word in parse_map(_MAP_KEY, text).items():
        protocol = PROTOCOLS.get(word.upper())
        if protocol is None:
            message = f"{_MAP_KEY} gives {name} the unknown protocol {word}"
            raise InvalidConfig(_MAP_KEY, text, message, ", ".join(PROTOCOLS))
        protocols[name.upper()] = protocol
    names = [*controller_names, *(entry.partition(":")[0].upper() for entry in listeners)]
    if not explicit and not any(name in PROTOCOLS and name != "PLAINTEXT" for name in names):
        protocols.update((name, "PLAINTEXT") for name in controller_names)
    return protocols


def parse_listeners(
    key: str, entries: Sequence[str], protocols: Mapping[str, Protocol], *, distinct_ports: bool
) -> tuple[Listener, ...]:
    """Returns the listeners of one setting; raises InvalidConfig if names, ports or protocols do not fit."""
    text = ",".join(entries)
    listeners = tuple(_parse_listener(key, text, entry, protocols) for entry in entries)
    if len({listener.name for listener in listeners}) < len(listeners):
        raise InvalidConfig(key, text, f"{key}: each listener must have a different name")
    if distinct_ports:
        for port in dict.fromkeys(listener.port for listener in listeners if listener.port):
            hosts = [listener.host for listener in listeners if listener.port == port]
            if len(hosts) > 1 and not _is_one_of_each_family(hosts):
                raise InvalidConfig(
                    key,
                    text,
                    f"{key}: port {port} is used twice; give each listener its own port, "
                    "unless one address is IPv4 and the other IPv6",
                )
    return listeners


def _parse_listener(key: str, text: str, entry: str, protocols: Mapping[str, Protocol]) -> Listener:
    endpoint = addresses.parse_endpoint(entry)
    if endpoint is None or not endpoint[0].strip():
        raise InvalidConfig(key, text, f"{key} has an entry that is no address: {entry}", "NAME://host:port")
    name, host, port = endpoint
    protocol = protocols.get(name)
    if protocol is None:
        message = f"{key} has a listener {name} whose protocol is unknown; add it to {_MAP_KEY}"
        raise InvalidConfig(key, text, message, "names that the map has: " + ", ".join(protocols))
    if not 0 <= port <= _PORT_MAX:
        raise InvalidConfig(key, text, f"{key} has an impossible port: {entry}", f"ports 0 to {_PORT_MAX}")
    return Listener(name, host, port, protocol)


def _is_one_of_each_family(hosts: Sequence[str]) -> bool:
    if len(hosts) != 2:
        return False
    families = {addresses.ip_version(host) for host in hosts}
    return families == {4, 6}

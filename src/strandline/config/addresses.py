"""Addresses inside configuration values: listeners, quorum voters and bootstrap servers.

The syntaxes are Kafka's: NAME://host:port, id@host:port, host:port; an IPv6 host stands in brackets, and for
listeners an empty host means every interface. Patterns are compiled on first use: most starts need one.
"""

from __future__ import annotations

import re

from strandline.config.java import INT_MAX, INT_MIN, parse_integer

_HOST = r"[0-9a-zA-Z\-%._:]*"
_HOST_AND_PORT = rf"(?:[0-9a-zA-Z\-%._]*://)?\[?({_HOST})\]?:([0-9]+)"
_ENDPOINT = rf"(.*)://\[?({_HOST})\]?:(-?[0-9]+)"


def parse_endpoint(entry: str) -> tuple[str, str, int] | None:
    """Returns the name in capitals, the host and the port of one entry of `listeners`."""
    match = re.fullmatch(_ENDPOINT, entry)
    if match is None:
        return None
    port = parse_integer(match[3], INT_MIN, INT_MAX)
    return None if port is None else (match[1].upper(), match[2], port)


def parse_address(entry: str) -> tuple[str, int] | None:
    """Returns the host and the port of host:port."""
    match = re.fullmatch(_HOST_AND_PORT, entry)
    if match is None:
        return None
    port = parse_integer(match[2], 0, INT_MAX)
    return None if port is None else (match[1], port)


def is_host(text: str) -> bool:
    return re.fullmatch(_HOST, text) is not None


def parse_voter(entry: str) -> tuple[int, str, int] | None:
    """Returns the node id, the host and the port of one entry of controller.quorum.voters."""
    number, at, rest = entry.partition("@")
    address = parse_address(rest) if at and "@" not in rest else None
    voter_id = parse_integer(number, INT_MIN, INT_MAX)
    return None if address is None or voter_id is None else (voter_id, *address)


def voter_flaw(name: str, entry: str) -> str | None:
    """Returns the error in one entry of controller.quorum.voters, in Kafka's words, or None."""
    form = "Each entry should be in the form `{id}@{host}:{port}`."
    number, at, address = entry.partition("@")
    if not at or not address or "@" in address:
        return f"Invalid configuration value for {name}. {form}"
    if parse_integer(number, INT_MIN, INT_MAX) is None:
        return f"Failed to parse voter ID as an integer from {number}"
    if parse_address(address) is None:
        return f"Failed to parse host name from entry {entry} for the configuration {name}. {form}"
    return None


def server_flaw(name: str, entry: str) -> str | None:
    """Returns the error in one entry of controller.quorum.bootstrap.servers, in Kafka's words, or None."""
    if parse_address(entry) is not None:
        return None
    form = 'Each entry should be in the form "{host}:{port}"'
    return f"Failed to parse host name from {entry} for the configuration {name}. {form}"


def is_loopback(host: str) -> bool:
    """Returns True if only this machine can connect to a listener there. Names other than localhost may be any
    address."""
    import ipaddress

    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def ip_version(host: str) -> int | None:
    """Returns 4 or 6 for a literal address, None for a name."""
    import ipaddress  # Only two listeners on one port lead here; loading it costs milliseconds.

    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None

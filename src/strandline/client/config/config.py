"""A client's settings: Kafka's names and Python's values, checked before anything is connected.

    ClientConfig.producer({"bootstrap.servers": "localhost:9092", "linger.ms": 10}, acks="all")

Settings come as a mapping by Kafka's dotted names, as keywords with underscores, or both (the keyword wins). A value
may be text, as in a properties file, or the Python value that it stands for: numbers, flags, lists, and for
serializers, partitioners and interceptors the object itself. An unknown name is an error that names the nearest known
one. Settings that contradict each other are an error too: both are likelier slips than wishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from strandline.client.config.admin_keys import ADMIN_KEYS
from strandline.client.config.consumer_keys import CONSUMER_KEYS
from strandline.client.config.producer_keys import PRODUCER_KEYS
from strandline.client.config.shared_keys import SECURITY_PREFIXES
from strandline.client.errors import ConfigError
from strandline.config.addresses import parse_address
from strandline.config.definition import CLASS, LIST, ConfigKey, Required
from strandline.config.typed_values import TypedValues, nearest
from strandline.config.values import InvalidConfig, parse, render
from strandline.config.variables import PROVIDERS

_CONFIG_PROVIDERS: Final = "strandline.node.config_providers"
_DEFAULT_PORT: Final = 9092  # of a server that is given without one, as with Kafka's other clients
_MAX_IN_FLIGHT_IDEMPOTENT: Final = 5  # how many batches of a producer a broker remembers


class ClientConfig(TypedValues):
    """The settings of one client, immutable. `originals` holds the names that the user set."""

    __slots__ = ("bootstrap", "originals")

    def __init__(
        self,
        keys: tuple[ConfigKey, ...],
        settings: Mapping[str, Any] | None,
        keywords: Mapping[str, Any],
        kind: str,
    ) -> None:
        """`kind` names the client: producer, consumer or admin."""
        if settings is not None and not isinstance(settings, Mapping):
            raise ConfigError(
                f"settings are a mapping by Kafka's names, or keywords, not {settings!r}: "
                'write bootstrap_servers="localhost:9092"'
            )
        known = {key.name: key for key in keys}
        originals = dict(settings or {})
        originals.update((name.replace("_", "."), value) for name, value in keywords.items())
        if originals.get(PROVIDERS):
            originals = _filled_in(originals)
        self.originals = frozenset(originals)
        self._values = {}
        for name in originals:
            if name not in known and not name.startswith(SECURITY_PREFIXES):
                raise ConfigError(_unknown(name, known), key=name)
        for key in keys:
            if key.name in originals:
                self._values[key.name] = _value(key, originals[key.name])
            elif isinstance(key.default, Required):
                raise ConfigError(f"{key.name} is missing, and has no default ({key.doc})", key=key.name)
            else:
                self._values[key.name] = key.default
        if "client.id" not in originals:
            self._values["client.id"] = f"strandline-{kind}"
        self.bootstrap = _addresses(self.strings("bootstrap.servers"))

    @classmethod
    def producer(cls, settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> ClientConfig:
        config = cls(PRODUCER_KEYS, settings, keywords, "producer")
        _check_producer(config)
        return config

    @classmethod
    def consumer(cls, settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> ClientConfig:
        config = cls(CONSUMER_KEYS, settings, keywords, "consumer")
        _check_consumer(config)
        return config

    @classmethod
    def admin(cls, settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> ClientConfig:
        return cls(ADMIN_KEYS, settings, keywords, "admin")

    def has(self, name: str) -> bool:
        """Returns True if this kind of client has the setting."""
        return name in self._values

    def seconds(self, name: str) -> float:
        """Returns a setting in milliseconds as seconds."""
        return self.int(name) / 1000

    def objects(self, name: str) -> tuple[object, ...]:
        """Returns the entries of a list setting that may hold objects."""
        return tuple(self._values[name])


def _filled_in(originals: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings with variables replaced. The module that reads files and the environment is found by name
    (docs/adr/0010)."""
    listed = originals[PROVIDERS]
    texts = {name: value for name, value in originals.items() if isinstance(value, str)}
    texts[PROVIDERS] = listed if isinstance(listed, str) else ",".join(listed)
    try:
        filled: dict[str, str] = import_module(_CONFIG_PROVIDERS).filled_in(texts)
    except InvalidConfig as error:
        raise ConfigError(error.message, key=error.key) from error
    return originals | filled


def _unknown(name: str, known: Mapping[str, ConfigKey]) -> str:
    return f"{name} is no setting of this client{nearest(name, known)}"


def _value(key: ConfigKey, value: Any) -> Any:
    if key.type == CLASS and not isinstance(value, str):
        return value
    if key.type == LIST and isinstance(value, list | tuple):
        if not all(isinstance(entry, str) for entry in value):
            return tuple(value)
        value = ",".join(value)
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    elif value is not None and not isinstance(value, str | int | float | bool):
        shown = type(value).__name__ if key.sensitive else repr(value)
        raise ConfigError(f"{key.name} cannot be {shown} (allowed: {key.allowed()})", key=key.name)
    try:
        return parse(key, value if value is None or isinstance(value, str) else render(value))
    except InvalidConfig as error:
        raise ConfigError(str(error), key=key.name) from error


def _addresses(servers: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    addresses = []
    for server in servers:
        address = parse_address(server if ":" in server else f"{server}:{_DEFAULT_PORT}")
        if address is None or not address[0] or not 0 < address[1] < 65_536:
            raise ConfigError(f"bootstrap.servers: {server!r} is not host:port", key="bootstrap.servers")
        addresses.append(address)
    return tuple(addresses)


def _check_producer(config: ClientConfig) -> None:
    if config.flag("enable.idempotence"):
        _check_idempotence(config)
    if config.value("transactional.id") is not None and not config.flag("enable.idempotence"):
        raise ConfigError(
            "transactional.id needs enable.idempotence=true: remove enable.idempotence=false",
            key="enable.idempotence",
        )
    shortest = config.int("linger.ms") + config.int("request.timeout.ms")
    if config.int("delivery.timeout.ms") < shortest:
        if "delivery.timeout.ms" in config.originals:
            raise ConfigError(
                f"delivery.timeout.ms={config.int('delivery.timeout.ms')} is shorter than linger.ms + "
                f"request.timeout.ms = {shortest}: raise it to at least that, or lower the others",
                key="delivery.timeout.ms",
            )
        config._values["delivery.timeout.ms"] = shortest
    if config.text("acks") == "all":
        config._values["acks"] = "-1"


def _check_idempotence(config: ClientConfig) -> None:
    """Checks the settings that idempotence needs. As in Java, one that contradicts it switches the default off, but
    is an error if the user set enable.idempotence or a transactional.id."""
    in_flight = config.int("max.in.flight.requests.per.connection")
    contradictions = [
        (config.text("acks") not in ("all", "-1"), "acks", "set acks=all"),
        (config.int("retries") == 0, "retries", "leave retries unset"),
        (
            in_flight > _MAX_IN_FLIGHT_IDEMPOTENT,
            "max.in.flight.requests.per.connection",
            f"set it to {_MAX_IN_FLIGHT_IDEMPOTENT} or less",
        ),
    ]
    for contradicts, key, fix in contradictions:
        if not contradicts:
            continue
        if "enable.idempotence" not in config.originals and config.value("transactional.id") is None:
            config._values["enable.idempotence"] = False
            return
        raise ConfigError(
            f"{key}={config.value(key)} contradicts enable.idempotence=true: {fix}, or set enable.idempotence=false",
            key=key,
        )


def _check_consumer(config: ClientConfig) -> None:
    if config.int("heartbeat.interval.ms") >= config.int("session.timeout.ms"):
        raise ConfigError(
            "heartbeat.interval.ms must be smaller than session.timeout.ms: a third of it is usual",
            key="heartbeat.interval.ms",
        )
    if (
        config.flag("enable.auto.commit")
        and "enable.auto.commit" in config.originals
        and not config.value("group.id")
    ):
        raise ConfigError(
            "enable.auto.commit=true needs a group.id: set one, or switch it off", key="group.id"
        )

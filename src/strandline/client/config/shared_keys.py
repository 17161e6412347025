"""The settings that every client has: where the cluster is, and how long to wait for it."""

from __future__ import annotations

from typing import Final

from strandline.client.config.security_keys import SECURITY_KEYS
from strandline.config.definition import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NON_EMPTY_LIST,
    REQUIRED,
    STRING,
    ConfigKey,
    OneOf,
    accepted,
    active,
    at_least,
    one_of,
)

DEFAULT_API_TIMEOUT: Final = active("default.api.timeout.ms", INT, 60_000, at_least(0), MEDIUM).documented(
    "How long a call that names no timeout of its own may take in all, retries included."
)

COMMON_KEYS: Final[tuple[ConfigKey, ...]] = (
    active("bootstrap.servers", LIST, REQUIRED, NON_EMPTY_LIST, HIGH).documented(
        "Addresses (host:port) through which the client finds the cluster; one that responds is enough."
    ),
    active("bootstrap.resolve.timeout.ms", LONG, 0, at_least(0), MEDIUM).documented(
        "How long a client that starts keeps asking where its bootstrap servers are, if none of their names has an "
        "address. With 0 it is refused at once; an address that is known once is looked for as long as it takes."
    ),
    active("client.id", STRING, "", None, MEDIUM).documented(
        "The name that brokers log and count requests under; without one strandline-producer, -consumer or -admin."
    ),
    active("cluster.id", STRING, None, None, LOW).documented(
        "The id that the cluster must have; the client refuses every other. Strandline's own setting: without it the "
        "first cluster that responds is the right one."
    ),
    active("request.timeout.ms", INT, 30_000, at_least(0), MEDIUM).documented(
        "How long to wait for the response to one request before the connection is given up."
    ),
    active("retry.backoff.ms", LONG, 100, at_least(0), LOW).documented(
        "The pause before the first retry; it doubles with each failure."
    ),
    active("retry.backoff.max.ms", LONG, 1000, at_least(0), LOW).documented(
        "The longest pause between retries."
    ),
    active("reconnect.backoff.ms", LONG, 50, at_least(0), LOW).documented(
        "The pause before connecting again to a broker that could not be reached; it doubles with each failure."
    ),
    active("reconnect.backoff.max.ms", LONG, 1000, at_least(0), LOW).documented(
        "The longest pause between attempts to connect."
    ),
    active("socket.connection.setup.timeout.ms", LONG, 10_000, at_least(1), MEDIUM).documented(
        "How long a connection may take to be made; it doubles with each failure."
    ),
    active("socket.connection.setup.timeout.max.ms", LONG, 30_000, at_least(1), MEDIUM).documented(
        "The longest that a connection may take to be made."
    ),
    active("connections.max.idle.ms", LONG, 540_000, None, MEDIUM).documented(
        "Connections that nothing was sent on for so long are closed; -1 for never."
    ),
    active("metadata.max.age.ms", LONG, 300_000, at_least(0), LOW).documented(
        "Metadata older than this is asked for again, even if nothing went wrong."
    ),
    active(
        "metadata.recovery.strategy",
        STRING,
        "rebootstrap",
        OneOf(("none", "rebootstrap"), any_case=True),
        LOW,
    ).documented("Whether bootstrap.servers is asked again when no known broker can be reached."),
    active("metadata.recovery.rebootstrap.trigger.ms", LONG, 300_000, at_least(0), LOW).documented(
        "How long metadata may fail to refresh before bootstrap.servers is asked again."
    ),
    *SECURITY_KEYS,
    accepted(
        "client.dns.lookup",
        STRING,
        "use_all_dns_ips",
        one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        MEDIUM,
    ).documented("How names are resolved; every address of a name is tried either way."),
    accepted("send.buffer.bytes", INT, 131_072, at_least(-1), MEDIUM).documented("The socket's send buffer."),
    accepted("receive.buffer.bytes", INT, 65_536, at_least(-1), MEDIUM).documented(
        "The socket's receive buffer."
    ),
    accepted("enable.metrics.push", BOOLEAN, True, None, LOW).documented(
        "Whether metrics are pushed to brokers."
    ),
    accepted("metrics.sample.window.ms", LONG, 30_000, at_least(0), LOW).documented(
        "The window of a metric."
    ),
    accepted("metrics.num.samples", INT, 2, at_least(1), LOW).documented("How many windows a metric keeps."),
    accepted(
        "metrics.recording.level", STRING, "INFO", OneOf(("INFO", "DEBUG", "TRACE"), any_case=True), LOW
    ).documented("How fine the metrics are."),
    accepted("metric.reporters", LIST, (), None, LOW).documented(
        "Names of Java classes; none is loaded here."
    ),
    accepted("security.providers", STRING, None, None, LOW).documented(
        "Names of Java classes; none is loaded here."
    ),
    active("config.providers", LIST, (), None, LOW).documented(
        "Where values come from that are written as ${provider:path:key}: the environment, files and directories, by "
        "the class names of Kafka's own providers."
    ),
)

# Other settings of TLS and SASL, those of Kerberos and of Java's classes, are accepted and have no effect.
# The parameters of config providers have names that only the provider knows.
SECURITY_PREFIXES: Final = ("ssl.", "sasl.", "config.providers.")

SERDE_DOC: Final = "str, bytes, json, none, or an object or function that does it."


def serde_key(name: str) -> ConfigKey:
    """Returns the setting of a serializer or deserializer."""
    return active(name, CLASS, None, None, HIGH).documented(SERDE_DOC)

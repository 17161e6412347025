"""Broker keys of the network and of requests: listeners, connections, sockets, threads, limits."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NON_EMPTY_LIST,
    NON_EMPTY_LIST_OR_NULL,
    PER_BROKER,
    STRING,
    ConfigKey,
    accepted,
    active,
    at_least,
)
from strandline.config.java import INT_MAX

KEYS: Final[tuple[ConfigKey, ...]] = (
    active("listeners", LIST, ("PLAINTEXT://:9092",), NON_EMPTY_LIST, HIGH, PER_BROKER).documented(
        "The addresses this node listens on, each NAME://host:port. An empty host is every interface, port "
        "0 any free port."
    ),
    active("advertised.listeners", LIST, None, NON_EMPTY_LIST_OR_NULL, HIGH).documented(
        "The addresses that clients get from the broker, if they differ from listeners."
    ),
    active(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        None,
        LOW,
        PER_BROKER,
    ).documented("The security protocol of each listener name, as NAME:PROTOCOL,NAME:PROTOCOL."),
    active("socket.send.buffer.bytes", INT, 102_400, None, HIGH).documented(
        "Size of a socket's send buffer; -1 leaves it to the operating system."
    ),
    active("socket.receive.buffer.bytes", INT, 102_400, None, HIGH).documented(
        "Size of a socket's receive buffer; -1 leaves it to the operating system, and so does Strandline where it "
        "is not set."
    ),
    active("socket.request.max.bytes", INT, 104_857_600, at_least(1), HIGH).documented(
        "Largest request that is read. A connection that announces more is closed."
    ),
    active("socket.listen.backlog.size", INT, 50, at_least(1), MEDIUM).documented(
        "Connections that may wait to be accepted; 1,024 where it is not set. The operating system may hold it lower."
    ),
    accepted("socket.connection.setup.timeout.ms", LONG, 10_000, None, MEDIUM).documented(
        "How long a connection to another node may take to open at the first attempt."
    ),
    accepted("socket.connection.setup.timeout.max.ms", LONG, 30_000, None, MEDIUM).documented(
        "How long a connection to another node may take to open after repeated failures."
    ),
    active("max.connections", INT, INT_MAX, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "Most connections served at once by this broker; others wait. Those of brokers that have a listener of "
        "their own are never held back."
    ),
    active("max.connections.per.ip", INT, INT_MAX, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "Most connections open at once from one address."
    ),
    active("max.connections.per.ip.overrides", STRING, "", None, MEDIUM, CLUSTER_WIDE).documented(
        "Other limits for some addresses, as host:count,host:count."
    ),
    active("max.connection.creation.rate", INT, INT_MAX, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "Most new connections a second on this broker. Beyond it, accepting is delayed."
    ),
    active("connections.max.idle.ms", LONG, 600_000, None, MEDIUM).documented(
        "How long a connection may be silent before it is closed; a negative number never closes it."
    ),
    active("connection.failed.authentication.delay.ms", INT, 100, at_least(0), LOW).documented(
        "Pause before a connection that failed to authenticate is closed, which slows down guessing."
    ),
    accepted("queued.max.requests", INT, 500, at_least(1), HIGH).documented(
        "Requests that may wait to be processed before the network stops reading."
    ),
    active("queued.max.request.bytes", LONG, -1, None, MEDIUM).documented(
        "Bytes of requests that may be in memory before no more are read; with 0 and less "
        "strandline.incomplete.requests.max.bytes holds."
    ),
    active("strandline.incomplete.requests.max.bytes", LONG, 67_108_864, at_least(1), MEDIUM).documented(
        "Bytes that requests which have not arrived completely may take, over all connections. Connections that "
        "want more wait, the youngest longest; the oldest request is always received."
    ),
    active("strandline.request.receive.timeout.ms", LONG, 60_000, at_least(1), MEDIUM).documented(
        "How long a request that has begun may take to arrive, and a second more for each 64 KiB of it. After that "
        "its connection is closed."
    ),
    accepted("num.network.threads", INT, 3, at_least(1), HIGH, CLUSTER_WIDE).documented(
        "Threads that read requests and write responses, on each listener. Strandline has one loop for all of "
        "it."
    ),
    accepted("num.io.threads", INT, 8, at_least(1), HIGH, CLUSTER_WIDE).documented(
        "Threads that process requests, disk access included."
    ),
    accepted("background.threads", INT, 10, at_least(1), HIGH, CLUSTER_WIDE).documented(
        "Threads for work that no request waits for."
    ),
    accepted("request.timeout.ms", INT, 30_000, None, HIGH).documented(
        "How long this node waits for the response of another node before it tries again or fails."
    ),
    active("fetch.max.bytes", INT, 57_671_680, at_least(1024), MEDIUM).documented(
        "Most bytes in the response to one fetch. One batch is always sent, however large."
    ),
    active("max.incremental.fetch.session.cache.slots", INT, 1000, at_least(0), MEDIUM).documented(
        "Incremental fetch sessions at a time. When all are in use, new sessions replace idle and smaller ones."
    ),
    active("max.request.partition.size.limit", INT, 2000, at_least(1), MEDIUM).documented(
        "Most partitions that one request may list, where the response can come in pages."
    ),
    active("delete.topic.enable", BOOLEAN, True, None, HIGH).documented(
        "Whether topics can be deleted. If not, the request is refused."
    ),
    active("telemetry.max.bytes", INT, 1_048_576, at_least(1), LOW).documented(
        "Largest push of metrics that is accepted from a client, after decompression."
    ),
)

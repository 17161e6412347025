"""The producer's settings, with Kafka's names, defaults and bounds, and which of them contradict each other."""

from __future__ import annotations

from typing import Final

from strandline.client.config.shared_keys import COMMON_KEYS, serde_key
from strandline.config.definition import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NON_EMPTY,
    STRING,
    ConfigKey,
    Range,
    accepted,
    active,
    at_least,
    between,
    one_of,
)

INT_MAX: Final = (1 << 31) - 1

PRODUCER_KEYS: Final[tuple[ConfigKey, ...]] = (
    *COMMON_KEYS,
    serde_key("key.serializer"),
    serde_key("value.serializer"),
    active("acks", STRING, "all", one_of("all", "-1", "0", "1"), HIGH).documented(
        "Who must have a record before it counts as sent: nobody (0), the leader (1), every replica in sync (all)."
    ),
    active("batch.size", INT, 16_384, at_least(0), MEDIUM).documented(
        "How many bytes of records for one partition are sent together at most; a larger record goes alone."
    ),
    active("linger.ms", LONG, 5, at_least(0), MEDIUM).documented(
        "How long a batch that is not full waits for more records."
    ),
    active("buffer.memory", LONG, 33_554_432, at_least(0), HIGH).documented(
        "How many bytes of records may wait to be sent; beyond that `send` waits for max.block.ms."
    ),
    active("max.block.ms", LONG, 60_000, at_least(0), MEDIUM).documented(
        "How long `send` may wait for metadata or memory, and a transaction's call for its coordinator."
    ),
    active("max.request.size", INT, 1_048_576, at_least(0), MEDIUM).documented(
        "The largest request, and so the largest record, before compression."
    ),
    active(
        "compression.type", STRING, "none", one_of("none", "gzip", "snappy", "lz4", "zstd"), HIGH
    ).documented("The codec of batches."),
    active("compression.gzip.level", INT, -1, Range(1, 9, other=-1), MEDIUM).documented("The level of gzip."),
    active("compression.lz4.level", INT, 9, between(1, 17), MEDIUM).documented("The level of lz4."),
    active("compression.zstd.level", INT, 3, between(-131_072, 22), MEDIUM).documented("The level of zstd."),
    active("delivery.timeout.ms", INT, 120_000, at_least(0), MEDIUM).documented(
        "How long a record may take from `send` to its acknowledgement, retries included."
    ),
    active("retries", INT, INT_MAX, between(0, INT_MAX), HIGH).documented(
        "How often a batch is sent again; delivery.timeout.ms is the better bound."
    ),
    active("max.in.flight.requests.per.connection", INT, 5, at_least(1), LOW).documented(
        "How many requests may wait for their responses on one connection."
    ),
    active("enable.idempotence", BOOLEAN, True, None, LOW).documented(
        "Whether retries are recognised by the broker, so that each record is in the log once and in order."
    ),
    active("transactional.id", STRING, None, NON_EMPTY, LOW).documented(
        "The name under which transactions survive the producer; it makes the producer transactional."
    ),
    active("transaction.timeout.ms", INT, 60_000, at_least(1), LOW).documented(
        "After how long the coordinator aborts a transaction that nobody ended."
    ),
    accepted("transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW).documented(
        "Whether transactions can be prepared and left to another to end (KIP-939)."
    ),
    active("partitioner.class", CLASS, None, None, MEDIUM).documented(
        "Who chooses partitions: unset (by key, else the partition that is least busy), round_robin, or a function "
        "of (topic, key bytes, value bytes, partition count) that gives a partition."
    ),
    active("partitioner.ignore.keys", BOOLEAN, False, None, MEDIUM).documented(
        "Whether records with keys are spread like those without."
    ),
    active("partitioner.adaptive.partitioning.enable", BOOLEAN, True, None, LOW).documented(
        "Whether partitions whose leaders are slow get fewer records without keys (KIP-794)."
    ),
    accepted("partitioner.availability.timeout.ms", LONG, 0, at_least(0), LOW).documented(
        "How long a leader may take nothing before records without keys avoid its partitions; 0 for never."
    ),
    active("interceptor.classes", LIST, (), None, LOW).documented(
        "Objects with on_send(record) and on_acknowledgement(metadata, error)."
    ),
    active("metadata.max.idle.ms", LONG, 300_000, at_least(5000), LOW).documented(
        "How long metadata of a topic that nothing is sent to is kept."
    ),
)

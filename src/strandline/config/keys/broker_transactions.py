"""Broker keys of transactions and of idempotent producers."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LOW,
    SHORT,
    ConfigKey,
    accepted,
    active,
    at_least,
)

KEYS: Final[tuple[ConfigKey, ...]] = (
    active("transaction.max.timeout.ms", INT, 900_000, at_least(1), HIGH).documented(
        "Longest timeout that a producer may request for its transactions."
    ),
    active(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, at_least(1), LOW
    ).documented("How often transactions that have timed out are searched for and aborted."),
    active(
        "transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, at_least(1), LOW
    ).documented("How often transactional ids that have expired are searched for and removed."),
    active("transactional.id.expiration.ms", INT, 604_800_000, at_least(1), HIGH).documented(
        "How long the coordinator remembers a transactional id that no transaction has used."
    ),
    active("transaction.partition.verification.enable", BOOLEAN, True, None, LOW, CLUSTER_WIDE).documented(
        "Whether a partition leader verifies with the coordinator that a transaction is open before "
        "it appends records of it."
    ),
    accepted("transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW).documented(
        "Whether producers may prepare a transaction for a commit that another system decides."
    ),
    active("transaction.state.log.num.partitions", INT, 50, at_least(1), HIGH).documented(
        "Partitions of __transaction_state. It must not change once the topic exists."
    ),
    active("transaction.state.log.replication.factor", SHORT, 3, at_least(1), HIGH).documented(
        "Replicas of __transaction_state. The topic is created once so many brokers are registered."
    ),
    active("transaction.state.log.min.isr", INT, 2, at_least(1), HIGH).documented(
        "Replicas of __transaction_state that must have a write before it counts."
    ),
    active("transaction.state.log.segment.bytes", INT, 104_857_600, at_least(1), HIGH).documented(
        "Segment size of __transaction_state. Smaller ones are compacted and loaded sooner."
    ),
    accepted("transaction.state.log.load.buffer.size", INT, 5_242_880, at_least(1), HIGH).documented(
        "Bytes read at a time when the state of transactions is loaded."
    ),
    active("add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1), HIGH).documented(
        "First pause before a broker asks the coordinator again to add a partition to a transaction."
    ),
    active("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0), HIGH).documented(
        "Longest pause before a broker asks the coordinator again to add a partition to a transaction."
    ),
    active("producer.id.expiration.ms", INT, 86_400_000, at_least(1), LOW, CLUSTER_WIDE).documented(
        "How long a partition remembers the sequence numbers of a producer that writes nothing."
    ),
)

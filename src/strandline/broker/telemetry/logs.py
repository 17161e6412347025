"""Metrics of log directories, compaction, scrubbing, transactions and delayed requests."""

from __future__ import annotations

from typing import Final

from strandline.broker.coordinator.txn_service import TransactionCoordinator
from strandline.broker.logs.cleaner import Cleaner
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replicas import Replicas
from strandline.broker.telemetry.health import NodeHealth
from strandline.telemetry.exposition import GAUGE, Families, Family, Sample, counter, gauge, labels
from strandline.transactions.transaction import STATE_NAMES

# The names of Kafka's delayed operations, by API key.
_DELAYED: Final = {0: "Produce", 1: "Fetch", 11: "Rebalance", 21: "DeleteRecords"}


class LogCollector:
    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        cleaner: Cleaner,
        transactions: TransactionCoordinator,
        health: NodeHealth,
    ) -> None:
        self._node = node
        self._replicas = replicas
        self._cleaner = cleaner
        self._transactions = transactions
        self._health = health

    def node_families(self) -> Families:
        yield from self._directories()
        yield from self._upkeep()
        yield from self._delayed()
        states: dict[str, int] = {}
        for runtime in self._transactions.shards():
            for transaction in list(runtime.shard.transactions.values()):
                name = STATE_NAMES[transaction.state]
                states[name] = states.get(name, 0) + 1
            yield None
        yield Family(
            "strandline_transactions",
            GAUGE,
            "Transactional ids that this broker coordinates, by their state.",
            [(labels(state=state), count) for state, count in sorted(states.items())],
        )
        help_ = "Kafka's number for the state of a broker: 1 starting, 2 recovering logs, 3 running, 6 shutting down."
        yield gauge("kafka_server_kafkaserver_brokerstate", help_, self._health.broker_state())

    def _directories(self) -> Families:
        offline: list[Sample] = []
        sizes: list[Sample] = []
        free: list[Sample] = []
        for directory in self._replicas.directories:
            key = labels(logDirectory=directory.path)
            is_offline = directory.offline_because is not None
            offline.append((key, int(is_offline)))
            if not is_offline:
                try:
                    total, usable = self._node.disk.capacity(directory.path)
                except OSError:
                    continue  # the next write there gets the reason
                sizes.append((key, total))
                free.append((key, usable))
        name = "kafka_log_logmanager_"
        count = sum(value for _, value in offline)
        yield gauge(f"{name}offlinelogdirectorycount", "Log directories that are offline.", count)
        yield Family(f"{name}logdirectoryoffline", GAUGE, "1 if the log directory is offline.", offline)
        yield Family("strandline_log_directory_bytes", GAUGE, "Bytes of the directory's volume.", sizes)
        yield Family(
            "strandline_log_directory_free_bytes", GAUGE, "Bytes of it that can still be used.", free
        )
        help_ = "Led logs that wait to be checked after an unclean end."
        yield gauge("strandline_logs_to_recover", help_, self._health.unrecovered_count())

    def _upkeep(self) -> Families:
        counters, cleaner = self._node.counters, self._cleaner
        help_ = "Partitions that are being compacted."
        yield gauge("strandline_cleaner_partitions_under_way", help_, len(cleaner.under_way))
        help_ = "Partitions that cannot be compacted, because they cannot be read."
        yield gauge(
            "kafka_log_logcleanermanager_uncleanable_partitions_count", help_, cleaner.uncleanable_count
        )
        yield counter(
            "strandline_scrubbed_bytes_total", "Bytes that were scrubbed.", counters.get("scrubbed_bytes")
        )
        help_ = "Damaged places that scrubbing found."
        yield counter("strandline_scrub_findings_total", help_, counters.get("scrub_findings"))

    def _delayed(self) -> Families:
        times = self._node.requests.times
        samples: list[Sample] = []
        for key, name in _DELAYED.items():
            found = times.get(key)
            waiting = 0 if found is None else found.waiting
            if found is not None and found.followers is not None:
                waiting += found.followers.waiting
            samples.append((labels(delayedOperation=name), waiting))
        help_ = "Requests that wait for others: for acknowledgements, for records, for members."
        yield Family("kafka_server_delayedoperationpurgatory_purgatorysize", GAUGE, help_, samples)

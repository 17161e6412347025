"""The commit markers of exactly-once sinks: one record per sink in a compacted topic, read when a batch begins.

The topic is compacted because then a marker never expires: offsets of a group without members are deleted after a week
(offsets.retention.minutes), and a query that was stopped for longer would write its last batch again (docs/adr/0016).

The driver reads up to the high watermark that it finds after it has fenced the sink's name. If another sink's
transaction is open before that offset, the driver waits: its own marker may lie after it, and must not be missed. A
driver that was killed leaves a transaction open for up to its timeout. A sink does not read a marker again that it has
committed itself, as long as the producer epochs show that no other driver had the name meanwhile. So only the first
batch of a run ever waits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.admin.configs import ConfigResource
from strandline.client.admin.topics import LATEST
from strandline.client.errors import KafkaTimeoutError, TopicExistsError, UnknownTopicError
from strandline.client.producer.partitioners import partition_for_key
from strandline.client.producer.shared_transaction import TransactionTicket
from strandline.client.sync import Admin, Consumer
from strandline.spark.cluster import admin_settings
from strandline.spark.sink.batch_decision import CommitMarker, LineageError

_log = logging.getLogger(__name__)

MARKER_TOPIC: Final = "strandline-spark-batches"
_PARTITIONS: Final = 8
_POLICY: Final = "compact"
_POLL_SECONDS: Final = 1.0
# An open transaction of another sink delays this sink for about as long as its commit takes. If that sink's driver
# died, the delay lasts until brokers abort the transaction: they allow 15 minutes by default
# (transaction.max.timeout.ms), and check every ten seconds.
_READ_TIMEOUT_SECONDS: Final = 16 * 60.0
_WARN_SECONDS: Final = 30.0


class MarkerLog:
    """The commit markers of one sink. Only the driver reads them, and each only once."""

    def __init__(self, settings: Mapping[str, str], name: str) -> None:
        self._key = name.encode()
        self._last: CommitMarker | None = None
        self._committed: TransactionTicket | None = (
            None  # the ticket of the transaction that committed the last marker
        )
        with ExitStack() as opened:
            self.admin = opened.enter_context(Admin(admin_settings(settings)))
            self._find_topic()
            self._consumer = opened.enter_context(
                Consumer(
                    {
                        **admin_settings(settings),
                        "isolation.level": "read_committed",
                        "auto.offset.reset": "earliest",
                        "enable.auto.commit": False,
                        "allow.auto.create.topics": False,
                    }
                )
            )
            # The consumer waits where a broker does not know of a topic yet that another has just created.
            count = len(self._consumer.partitions_for(MARKER_TOPIC))
            self.partition = TopicPartition(MARKER_TOPIC, partition_for_key(self._key, count))
            self._consumer.assign([self.partition])
            self._consumer.seek_to_beginning(self.partition)
            self._clients = opened.pop_all()

    def close(self) -> None:
        """Closes the admin and the consumer."""
        self._clients.close()

    def committed(self, marker: CommitMarker, ticket: TransactionTicket) -> None:
        """Remembers the marker that this sink's own transaction has committed."""
        self._last, self._committed = marker, ticket

    def last(self, ticket: TransactionTicket | None = None) -> CommitMarker | None:
        """Returns the marker that was committed last. The ticket is that of the transaction that needs to know."""
        if self._committed is not None and ticket is not None and is_next_epoch(self._committed, ticket):
            return self._last
        end = self.admin.list_offsets({self.partition: LATEST})[self.partition].offset
        began_at, has_warned = time.monotonic(), False
        while self._consumer.position(self.partition) < end:
            for record in self._consumer.poll(_POLL_SECONDS):
                if record.key == self._key:
                    self._last = None if record.value is None else CommitMarker.from_bytes(record.value)
            waited = time.monotonic() - began_at
            if waited > _WARN_SECONDS and not has_warned:
                _log.warning(
                    "%s has an open transaction of another sink, perhaps of a dead one: waiting",
                    self.partition,
                )
                has_warned = True
            if waited > _READ_TIMEOUT_SECONDS:
                raise KafkaTimeoutError(
                    None,
                    f"{self.partition} cannot be read up to its end: a transaction is open in it",
                    advice="see `describe_transactions`; it ends by itself after its transaction.timeout.ms",
                )
        return self._last

    def record(self, marker: CommitMarker) -> dict[str, Any]:
        """Returns the arguments with which a producer writes the marker."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "key": self._key,
            "value": marker.to_bytes(),
        }

    def _find_topic(self) -> None:
        try:
            self.admin.describe_topics([MARKER_TOPIC])
        except UnknownTopicError:
            self._create_topic()
        else:
            self._check_topic()

    def _create_topic(self) -> None:
        try:
            self.admin.create_topic(MARKER_TOPIC, partitions=_PARTITIONS, configs={"cleanup.policy": _POLICY})
        except TopicExistsError:
            return  # another sink has just created it

    def _check_topic(self) -> None:
        """Raises LineageError if the topic is not compacted: somebody may have created it by hand, or by writing to it
        where brokers create topics by themselves."""
        resource = ConfigResource.topic(MARKER_TOPIC)
        configs = self.admin.describe_configs([resource], names=["cleanup.policy"])[resource]
        policy = configs["cleanup.policy"].value
        if policy != _POLICY:
            raise LineageError(
                f"the topic {MARKER_TOPIC} has cleanup.policy={policy}, under which markers of batches expire, and a "
                f"batch that is repeated later would be written twice: set it to {_POLICY}"
            )


def is_next_epoch(committed: TransactionTicket, ticket: TransactionTicket) -> bool:
    """True if no other driver had the name between the two tickets. A driver that takes the name over raises the epoch
    by one, and with transaction version 2 (KIP-890) the commit before has raised it by one. Nothing is known about
    another producer id."""
    raised = 2 if committed.is_version_2 else 1
    is_same = (committed.producer_id, committed.is_version_2) == (ticket.producer_id, ticket.is_version_2)
    return is_same and ticket.epoch == committed.epoch + raised

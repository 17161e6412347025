"""Which batch each exactly-once sink has committed: one record per sink in a compacted topic, read when a batch begins.

A compacted topic because it never expires: offsets of a group without members are deleted after a week
(offsets.retention.minutes), and a query that was stopped for longer would write its last batch again (docs/adr/0016).

The reader reads to the high watermark that it finds after the sink has been fenced. If another sink's transaction is
open before that, it waits: its own marker may lie behind, and must not be missed. A driver that was killed leaves one
open for up to its timeout. So what this sink has committed itself is not read again while nobody else had its name in
between, which epochs say: only the first batch of a run ever waits.
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
from strandline.spark.sink.batch_decision import LineageError, Marker

_log = logging.getLogger(__name__)

TOPIC: Final = "strandline-spark-batches"
_PARTITIONS: Final = 8
_POLICY: Final = "compact"
_POLL_SECONDS: Final = 1.0
# An open transaction of another sink holds this one up for about as long as its commit takes; of one whose driver died
# until brokers abort it. They allow 15 minutes as shipped (transaction.max.timeout.ms), and look every ten seconds.
_PATIENCE_SECONDS: Final = 16 * 60.0
_UNUSUAL_SECONDS: Final = 30.0


class MarkerLog:
    """Read by the driver only, and only for one sink; what was read once is not read again."""

    def __init__(self, settings: Mapping[str, str], name: str) -> None:
        self._key = name.encode()
        self._last: Marker | None = None
        self._committed: TransactionTicket | None = None  # of the transaction that has committed the last one
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
            count = len(self._consumer.partitions_for(TOPIC))
            self.where = TopicPartition(TOPIC, partition_for_key(self._key, count))
            self._consumer.assign([self.where])
            self._consumer.seek_to_beginning(self.where)
            self._clients = opened.pop_all()

    def close(self) -> None:
        self._clients.close()

    def committed(self, marker: Marker, ticket: TransactionTicket) -> None:
        """This sink's own transaction has committed it."""
        self._last, self._committed = marker, ticket

    def last(self, ticket: TransactionTicket | None = None) -> Marker | None:
        """The marker that was committed last. The ticket is that of the transaction for which it is asked."""
        if self._committed is not None and ticket is not None and follows(self._committed, ticket):
            return self._last
        end = self.admin.list_offsets({self.where: LATEST})[self.where].offset
        began_at, has_told = time.monotonic(), False
        while self._consumer.position(self.where) < end:
            for record in self._consumer.poll(_POLL_SECONDS):
                if record.key == self._key:
                    self._last = None if record.value is None else Marker.from_bytes(record.value)
            waited = time.monotonic() - began_at
            if waited > _UNUSUAL_SECONDS and not has_told:
                _log.warning(
                    "%s has an open transaction of another sink, perhaps of a dead one: waiting", self.where
                )
                has_told = True
            if waited > _PATIENCE_SECONDS:
                raise KafkaTimeoutError(
                    None,
                    f"{self.where} cannot be read up to its end: a transaction is open in it",
                    advice="see `describe_transactions`; it ends by itself after its transaction.timeout.ms",
                )
        return self._last

    def record(self, marker: Marker) -> dict[str, Any]:
        """Where and what to write, in the batch's transaction."""
        return {
            "topic": self.where.topic,
            "partition": self.where.partition,
            "key": self._key,
            "value": marker.to_bytes(),
        }

    def _find_topic(self) -> None:
        try:
            self.admin.describe_topics([TOPIC])
        except UnknownTopicError:
            self._create_topic()
        else:
            self._check_topic()

    def _create_topic(self) -> None:
        try:
            self.admin.create_topic(TOPIC, partitions=_PARTITIONS, configs={"cleanup.policy": _POLICY})
        except TopicExistsError:
            return  # another sink has just created it

    def _check_topic(self) -> None:
        """Somebody else may have created it: by hand, or by writing to it where brokers create topics by themselves."""
        resource = ConfigResource.topic(TOPIC)
        found = self.admin.describe_configs([resource], names=["cleanup.policy"])[resource]
        policy = found["cleanup.policy"].value
        if policy != _POLICY:
            raise LineageError(
                f"the topic {TOPIC} has cleanup.policy={policy}, under which markers of batches expire, and a batch "
                f"that is repeated later would be written twice: set it to {_POLICY}"
            )


def follows(committed: TransactionTicket, ticket: TransactionTicket) -> bool:
    """Whether nobody had the name between the two: whoever takes it raises the epoch by one, and with transaction
    version 2 (KIP-890) the commit has raised it by one before. Of another producer id nothing is known."""
    raised = 2 if committed.is_version_2 else 1
    is_same = (committed.producer_id, committed.is_version_2) == (ticket.producer_id, ticket.is_version_2)
    return is_same and ticket.epoch == committed.epoch + raised

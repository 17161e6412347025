"""Clients for code that blocks: the same producer, consumer and admin, from any thread.

    from strandline.client.sync import Producer

    with Producer(bootstrap_servers="localhost:9092") as producer:
        producer.send("orders", b"value").result(10)

All of a process's blocking clients share one background thread with one loop. They may be made before or after a fork,
but one made before it belongs to the parent: the child makes its own.
"""

from __future__ import annotations

from strandline.base.ids import TopicPartition
from strandline.client.errors import KafkaError
from strandline.client.sync.admin import Admin
from strandline.client.sync.consumer import CommitResult, Consumer
from strandline.client.sync.producer import (
    Producer,
    SendResult,
    TableResult,
    TransactionMember,
    TransactionOwner,
)

__all__ = [
    "Admin",
    "CommitResult",
    "Consumer",
    "KafkaError",
    "Producer",
    "SendResult",
    "TableResult",
    "TopicPartition",
    "TransactionMember",
    "TransactionOwner",
]

"""Clients for code that blocks: the same producer, consumer and admin, from any thread.

    from strandline.client.sync import Producer

    with Producer(bootstrap_servers="localhost:9092") as producer:
        producer.send("orders", b"value").result(10)

All blocking clients of a process share one background thread with one loop. They may be created before or after a
fork, but one created before it belongs to the parent: the child creates its own. Names are loaded on first use. Values
and errors are those of `strandline.client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.base.ids import TopicPartition
from strandline.base.lazy_names import lazy_names
from strandline.client.errors import KafkaError

if TYPE_CHECKING:
    from strandline.client.sync.admin import Admin as Admin
    from strandline.client.sync.consumer import CommitResult as CommitResult
    from strandline.client.sync.consumer import Consumer as Consumer
    from strandline.client.sync.deadletter import DeadLetters as DeadLetters
    from strandline.client.sync.producer import Producer as Producer
    from strandline.client.sync.producer import SendResult as SendResult
    from strandline.client.sync.producer import TableResult as TableResult
    from strandline.client.sync.producer import TransactionMember as TransactionMember
    from strandline.client.sync.producer import TransactionOwner as TransactionOwner

__all__ = [
    "Admin",
    "CommitResult",
    "Consumer",
    "DeadLetters",
    "KafkaError",
    "Producer",
    "SendResult",
    "TableResult",
    "TopicPartition",
    "TransactionMember",
    "TransactionOwner",
]

_HOMES: Final = {
    "Admin": "admin",
    "CommitResult": "consumer",
    "Consumer": "consumer",
    "DeadLetters": "deadletter",
    "Producer": "producer",
    "SendResult": "producer",
    "TableResult": "producer",
    "TransactionMember": "producer",
    "TransactionOwner": "producer",
}


if not TYPE_CHECKING:  # a checker that sees this would let any name pass
    __getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

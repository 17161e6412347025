"""The Kafka client: producer, consumer and admin on asyncio, for Strandline and Apache Kafka alike.

    async with Producer(bootstrap_servers="localhost:9092") as producer:
        metadata = await producer.send_and_wait("orders", value=b"...")

`strandline.client.sync` has the same clients for code that blocks. Names are loaded on first use, so that a program
which only produces does not pay for the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.errors import KafkaError

if TYPE_CHECKING:
    from strandline.client.admin.admin import Admin as Admin
    from strandline.client.consumer.consumer import Consumer as Consumer
    from strandline.client.producer.producer import Producer as Producer

__all__ = ["Admin", "Consumer", "KafkaError", "Producer", "TopicPartition"]

_HOMES: Final = {
    "Admin": "strandline.client.admin.admin",
    "Consumer": "strandline.client.consumer.consumer",
    "Producer": "strandline.client.producer.producer",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)

"""The snippets of docs/guides/serializers.md run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from strandline.base.ids import TopicPartition
from strandline.client import Consumer, Producer
from strandline.testing import BrokerProcess, RegistryProcess

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "serializers.md"


async def test_the_snippets_of_the_guide_run(
    strandline_broker: BrokerProcess, strandline_registry: RegistryProcess
) -> None:
    names: dict[str, Any] = {}
    snippets = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    exec(snippets[0], names)
    await names["write"](strandline_broker.bootstrap, strandline_registry.url)
    assert await names["read"](strandline_broker.bootstrap, strandline_registry.url) == {
        "id": 7,
        "note": "by bike",
    }
    exec(snippets[2], names)

    async def fetch_key() -> bytes:
        return b"k1"

    signed = names["Signed"](fetch_key)
    async with Producer(bootstrap_servers=strandline_broker.bootstrap, value_serializer=signed) as producer:
        await producer.send_and_wait("signed", "text")
    async with Consumer(bootstrap_servers=strandline_broker.bootstrap) as consumer:
        consumer.assign([TopicPartition("signed", 0)])
        consumer.seek_to_beginning()
        record = await consumer.getone()
        assert (record.value, record.headers) == (b"text", (("signed-with", b"k1"),))
    exec(snippets[3], names)
    async with Consumer(bootstrap_servers=strandline_broker.bootstrap) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        consumer.seek_to_beginning()
        assert await names["total"](consumer, strandline_registry.url) == 7
    exec(snippets[1], names)
    assert names["registry"].settings.urls == ("https://one:8081", "https://two:8081")

"""Quotas that are set, and producers that they slow down."""

from __future__ import annotations

import time
from typing import Any

from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from tests.batches import batch
from tests.compat.wire import WireClient


def set_quota(client: WireClient, entity: dict[str, str | None], **values: float | None) -> None:
    changes = tuple(OpData(key=k, value=v or 0.0, remove=v is None) for k, v in values.items())
    named = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items())
    request = AlterClientQuotasRequest(entries=(EntryData(entity=named, ops=changes),), validate_only=False)
    response: Any = client.call(request, 1)
    assert [entry.error_code for entry in response.entries] == [0], response


def produce(client: WireClient, topic: str, size: int, *, version: int = 9, acks: int = 1) -> Any:
    records = batch(size=size, timestamp=int(time.time() * 1000))
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),))
    request = ProduceRequest(transactional_id=None, acks=acks, timeout_ms=5000, topic_data=(data,))
    client.send(request, version)
    return client.receive(ProduceRequest, version) if acks else None

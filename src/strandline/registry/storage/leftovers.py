"""Finds the records of aborted transactions in `_schemas`.

A reader of uncommitted records, such as Confluent's registry, sees them. The new writer overwrites each with the
committed value of its key, or with a tombstone, before it serves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.world import ClientWorld

_POLL_SECONDS: Final = 0.2


async def find_leftovers(
    client: Mapping[str, Any],
    topic: str,
    committed_hashes: Mapping[bytes, int],
    world: ClientWorld | None = None,
) -> dict[bytes, bytes | None]:
    """Returns the keys whose last record was aborted, each with its committed value, or None if it has none.

    `committed_hashes` has the hash of the last committed value of each key.
    """
    uncommitted = await _last_values(client, topic, "read_uncommitted", world)
    nothing = hash(None)
    if all(committed_hashes.get(key, nothing) == hash(value) for key, value in uncommitted.items()):
        return {}
    committed = await _last_values(client, topic, "read_committed", world)
    return {key: committed.get(key) for key, value in uncommitted.items() if committed.get(key) != value}


async def _last_values(
    client: Mapping[str, Any], topic: str, isolation: str, world: ClientWorld | None
) -> dict[bytes, bytes | None]:
    where = TopicPartition(topic, 0)
    settings = {**client, "isolation.level": isolation, "enable.auto.commit": "false"}
    values: dict[bytes, bytes | None] = {}
    async with Consumer(settings, world=world) as consumer:
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        end = (await consumer.end_offsets([where]))[where]
        while await consumer.position(where) < end:
            for record in await consumer.poll(_POLL_SECONDS):
                if record.key is not None:
                    values[record.key] = record.value
    return values

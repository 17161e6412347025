"""The right to write to `_schemas`: all instances use one transactional id, and its newest producer has the right and
fences the one before. So two instances never commit at the same time, and never give the same id to two schemas. The
writer's address is the metadata of an offset that it commits in its first transaction, for the group of the registry.
So it is always the address of the instance that took the right last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.admin.groups import GroupAdmin
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import KafkaError
from strandline.client.producer.producer import Producer
from strandline.client.world import ClientWorld

_BLOCK_MS: Final = 20_000
_TRANSACTION_MS: Final = 20_000

EncodedRecord = tuple[bytes, bytes | None]


class WriterLost(Exception):
    """Another instance has taken the right to write, or it is not known whether this one still has it.

    Records that were being written may have been committed or not: the topic shows it.
    """


class TopicWriter:
    def __init__(
        self, client: Mapping[str, Any], topic: str, group: str, world: ClientWorld | None = None
    ) -> None:
        self._topic = topic
        self._group = group
        self._producer = Producer(
            {
                **client,
                "transactional.id": f"{group}-{topic}",
                "transaction.timeout.ms": str(_TRANSACTION_MS),
                "max.block.ms": str(_BLOCK_MS),
                "linger.ms": "0",
            },
            world=world,
        )

    async def start(self) -> None:
        """Takes the right to write. The previous writer is fenced from now on, and its open transaction is aborted."""
        await self._producer.start()
        try:
            await self._producer.init_transactions()
        except BaseException:
            await self._producer.close(0)
            raise

    async def close(self) -> None:
        await self._producer.close(0)

    async def announce(self, url: str, records: Iterable[EncodedRecord]) -> None:
        """Commits this instance's address as the writer's, together with these records."""
        await self._commit(list(records), url)

    async def write(self, records: list[EncodedRecord]) -> int:
        """Commits records together; returns the offset of the last one. Raises WriterLost if that failed."""
        offset = await self._commit(records, None)
        assert offset is not None
        return offset

    async def _commit(self, records: list[EncodedRecord], url: str | None) -> int | None:
        try:
            self._producer.begin_transaction()
            promises = [
                await self._producer.send(self._topic, value, key, partition=0) for key, value in records
            ]
            if url is not None:
                metadata = json.dumps({"writer": url})
                offsets = {TopicPartition(self._topic, 0): OffsetAndMetadata(0, metadata=metadata)}
                await self._producer.send_offsets_to_transaction(offsets, self._group)
            await self._producer.commit_transaction()
            return (await promises[-1]).offset if promises else None
        except KafkaError as error:
            raise WriterLost(str(error)) from error


async def find_writer(
    client: Mapping[str, Any], topic: str, group: str, world: ClientWorld | None = None
) -> str | None:
    """Returns the address of the instance that took the right to write last; None if there never was one."""
    where = TopicPartition(topic, 0)
    async with GroupAdmin(client, world=world) as admin:
        found = (await admin.list_group_offsets(group, [where])).get(where)
    if found is None or not found.metadata:
        return None
    try:
        return str(json.loads(found.metadata)["writer"])
    except (ValueError, KeyError, TypeError):
        return None

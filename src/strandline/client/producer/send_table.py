"""Sends the rows of a table, for `Producer.send_table`."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final, Protocol

import pyarrow as pa

from strandline.client.columnar.compiled import kernels
from strandline.client.columnar.table_encoder import BatchBody, RecordTooLarge, TableColumns, batches_of
from strandline.client.config.config import ClientConfig
from strandline.client.errors import ConfigError, KafkaError, RecordTooLargeError, SerializationError
from strandline.client.producer.batch import ProducerBatch
from strandline.client.world import ClientWorld
from strandline.wire import compression
from strandline.wire.record_batch import HEADER_BYTES

# Tables come whole, so batches need not wait for more records: larger ones cost client and broker less per record.
BATCH_BYTES: Final = 256 * 1024
# Timestamp and partition come from the table only if the caller names their columns: a table that was read has both.
USUAL_COLUMNS: Final[dict[str, str | None]] = {
    "key": "key",
    "value": "value",
    "timestamp": None,
    "headers": "headers",
    "partition": None,
}
# How many partitions are drawn for the rows of a table that have no key; they are used in turn.
_STICKY_DRAWS: Final = 64


class TableProducer(Protocol):
    """The part of a producer that this needs."""

    config: ClientConfig

    async def partitions_for(self, topic: str) -> tuple[Any, ...]: ...

    async def append_batch(
        self,
        topic: str,
        partition: int,
        body: bytes,
        count: int,
        *,
        base_timestamp_ms: int,
        max_timestamp_ms: int,
        codec: int = 0,
    ) -> ProducerBatch: ...


class SentTable:
    """The outcome of a table's rows; `await` returns once all are acknowledged, or raises the first error."""

    __slots__ = ("_batches", "rows")

    def __init__(self, rows: int, batches: list[ProducerBatch]) -> None:
        self.rows = rows
        self._batches = batches

    def __await__(self) -> Generator[Any, None, SentTable]:
        return self.acknowledged().__await__()

    def done(self) -> bool:
        """Returns True if every row has its outcome."""
        return all(batch.outcome is not None for batch in self._leaves())

    def check(self) -> None:
        """Raises the first error of those that are known."""
        for batch in self._leaves():
            if isinstance(batch.outcome, KafkaError):
                self._observe()
                raise batch.outcome

    def _observe(self) -> None:
        for batch in self._leaves():
            batch.is_observed = True

    def _leaves(self) -> Iterator[ProducerBatch]:
        """Yields the batches that have outcomes of their own: a split batch has none, its parts have."""
        waiting = self._batches[::-1]
        while waiting:
            batch = waiting.pop()
            if batch.split is None:
                yield batch
            else:
                waiting += [part for _, part in reversed(batch.split)]

    async def acknowledged(self) -> SentTable:
        """Waits until all rows are acknowledged, or raises the first error."""
        self._observe()
        waiting = list(self._batches)
        while waiting:
            batch = waiting.pop()
            if batch.outcome is None and batch.split is None:
                await batch.wait()
            if batch.split is not None:
                waiting += [part for _, part in batch.split]
            elif isinstance(batch.outcome, KafkaError):
                raise batch.outcome
        return self


async def send_table(
    producer: TableProducer,
    world: ClientWorld,
    topic: str,
    table: pa.Table | pa.RecordBatch,
    names: Mapping[str, str | None],
) -> SentTable:
    """Appends all rows to the producer, waiting for memory as `send` does; the result is for the acknowledgements.

    `names` are the columns of key, value, timestamp, headers and partition, where they are not as usual.
    """
    unknown = [role for role in names if role not in USUAL_COLUMNS]
    if unknown:
        raise TypeError(f"send_table takes no {unknown[0]!r}: it takes {', '.join(USUAL_COLUMNS)}")
    names = USUAL_COLUMNS | dict(names)
    columns = {role: _column(table, role, name) for role, name in names.items()}
    count = len(await producer.partitions_for(topic))
    config = producer.config
    codec = compression.CODES[config.text("compression.type")]
    limit = config.int("max.request.size") - HEADER_BYTES
    sent: list[ProducerBatch] = []
    try:
        for start, part in _parts(table):
            chunk = TableColumns(
                part.num_rows,
                **{
                    role: None if column is None else _whole(column, start, part.num_rows)
                    for role, column in columns.items()
                },
            )
            for batch in batches_of(
                chunk,
                partition_count=count,
                sticky=[world.random.below(count) for _ in range(_STICKY_DRAWS)],
                batch_bytes=min(limit, max(BATCH_BYTES, config.int("batch.size"))),
                record_bytes_max=limit,
                now_ms=world.clock.wall_ms(),
                kernels=kernels(),
            ):
                sent.append(await _append(producer, world, topic, batch, codec))
                # The sender must have its turn, however large the table.
                await asyncio.sleep(0)
    except RecordTooLarge as error:
        raise RecordTooLargeError(None, str(error)) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SerializationError(
            None, f"a column is not what records are made of: {error}", advice="cast it to binary or string"
        ) from error
    return SentTable(table.num_rows, sent)


async def _append(
    producer: TableProducer, world: ClientWorld, topic: str, batch: BatchBody, codec: int
) -> ProducerBatch:
    body = batch.body
    if codec:
        body = await world.workers.run(compression.compress, codec, body)
    return await producer.append_batch(
        topic,
        batch.partition,
        body,
        batch.record_count,
        base_timestamp_ms=batch.base_timestamp,
        max_timestamp_ms=batch.max_timestamp,
        codec=codec,
    )


def _column(table: pa.Table | pa.RecordBatch, role: str, name: str | None) -> Any:
    """Returns the column, or None where none is named. Columns by their usual names may be missing, except the
    value's."""
    if name is None:
        return None
    if name in table.schema.names:
        return table.column(name)
    if name == role and role in ("key", "headers"):
        return None
    raise ConfigError(
        f"the table has no column {name} for the {role}: it has {', '.join(table.schema.names)}"
    )


def _parts(table: pa.Table | pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
    if isinstance(table, pa.RecordBatch):
        return [(0, table)]
    parts, start = [], 0
    for part in table.to_batches():
        parts.append((start, part))
        start += part.num_rows
    return parts


def _whole(column: Any, start: int, rows: int) -> pa.Array:
    part = column.slice(start, rows)
    if isinstance(part, pa.ChunkedArray):
        return part.chunk(0) if part.num_chunks == 1 else part.combine_chunks()
    return part

"""Fetched batches as a table, for `Consumer.poll_table`.

A worker thread decodes large ones: the kernels release the interpreter's lock, so that the loop goes on fetching.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from strandline.base.errors import ErrorCode
from strandline.client.columnar.compiled import kernels
from strandline.client.columnar.table_decoder import SCHEMA, SCHEMA_WITH_TIMESTAMP_TYPE, BatchPart, table_of
from strandline.client.errors import error_for
from strandline.client.world import ClientWorld
from strandline.wire.record_batch import CorruptBatch

EMPTY: Final = {
    False: pa.RecordBatch.from_pylist([], schema=SCHEMA),
    True: pa.RecordBatch.from_pylist([], schema=SCHEMA_WITH_TIMESTAMP_TYPE),
}

# Below this handing over to another thread costs more than decoding here.
_WORKER_BYTES_MIN: Final = 256 * 1024


async def to_table(
    parts: list[BatchPart], world: ClientWorld, with_timestamp_type: bool = False
) -> pa.RecordBatch:
    """Returns the records of these batches from their positions on."""
    if not parts:
        return EMPTY[with_timestamp_type]
    size = sum(len(data) for _, _, _, _, data in parts)
    try:
        if size < _WORKER_BYTES_MIN:
            return table_of(parts, kernels(), with_timestamp_type)
        return await world.workers.run(table_of, tuple(parts), kernels(), with_timestamp_type)
    except CorruptBatch as error:
        raise error_for(ErrorCode.CORRUPT_MESSAGE, str(error)) from error

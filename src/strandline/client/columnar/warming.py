"""Compiles the kernels, or loads them from their cache, before they are needed.

The first use after an installation takes some seconds. `warm_up` is for programs that would rather wait at their
start.
"""

from __future__ import annotations

import pyarrow as pa

from strandline.client.columnar.compiled import RecordKernels, kernels
from strandline.client.columnar.table_decoder import table_of
from strandline.client.columnar.table_encoder import TableColumns, batches_of
from strandline.wire.record_batch import Record, build_batch, read_header


def warm_up(chosen: RecordKernels | None = None) -> None:
    """Runs every kernel once."""
    chosen = chosen or kernels()
    batch = build_batch([Record(0, 0, b"key", b"value", ((b"name", b"content"),))])
    table = table_of([("topic", 0, 0, read_header(batch), memoryview(batch))], chosen)
    for partition in (None, pa.array([0], pa.int32())):
        columns = TableColumns(1, table["key"], table["value"], None, table["headers"], partition)
        list(
            batches_of(
                columns,
                partition_count=1,
                sticky=(0,),
                batch_bytes=1024,
                record_bytes_max=1024,
                now_ms=0,
                kernels=chosen,
            )
        )

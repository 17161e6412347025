"""Where rows go, decided before they are shuffled: each output partition must be written by one task alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from strandline.client.sync import Admin
from strandline.spark.cluster import admin_settings

# Columns that this adds; a DataFrame may have ones of the usual names.
PLACE: Final = "strandline_partition"
_STICKY_DRAWS: Final = 64


def placer(settings: Mapping[str, str]) -> Callable[..., pa.Array]:
    """A function of topic, key and partition columns that gives the partition of each row. It runs in tasks."""
    common = tuple(sorted(admin_settings(settings).items()))

    def place(topics: pa.Array, keys: pa.Array, partitions: pa.Array) -> pa.Array:
        found = pa.nulls(len(topics), pa.int32())
        if topics.null_count:
            raise ValueError("a row has null as its topic: set topic=, or filter such rows out")
        for name in pc.unique(topics).to_pylist():
            mask = pc.equal(topics, name)
            chosen = _places(keys.filter(mask), partitions.filter(mask), partition_count(common, name), name)
            found = pc.replace_with_mask(found, mask, chosen)
        return found

    return place


@cache
def partition_count(common: tuple[tuple[str, str], ...], topic: str) -> int:
    """Asked once per process and topic: partitions that are added meanwhile get rows from the next process on."""
    with Admin(dict(common)) as admin:
        return len(admin.describe_topics([topic])[topic].partitions)


def _places(keys: Any, partitions: Any, count: int, topic: str) -> Any:
    import random

    from strandline.client.columnar.compiled import kernels
    from strandline.client.columnar.writing import TableColumns, partitions_of

    columns = TableColumns(len(keys), keys, None, None, None, partitions)
    sticky = [random.randrange(count) for _ in range(_STICKY_DRAWS)]
    try:
        return partitions_of(columns, partition_count=count, sticky=sticky, kernels=kernels())
    except ValueError as error:
        raise ValueError(f"topic {topic}: {error}") from error

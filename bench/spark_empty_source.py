"""A Python source with one row for each micro-batch, to measure the cost of PySpark itself for a source in Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

TASKS = 4


class EmptySource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "bench_empty"

    def schema(self) -> str:
        return "value int"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return EmptyReader(int(self.options["batches"]))


class EmptyReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, batches: int) -> None:
        self._batches = batches

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"at": min(self._batches, start["at"] + 1)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(1)

    def prepareForTriggerAvailableNow(self) -> None:
        """Does nothing: the source ends by itself."""

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(number) for number in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (0,)

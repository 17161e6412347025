"""How long a task waits for records, without the time that others take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from strandline.client.errors import KafkaTimeoutError
from strandline.spark import range_reader
from strandline.spark.offsets import OffsetRange
from strandline.spark.options import read_options

HOUR_SECONDS = 3600.0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Polled:
    """A table in the background; how many were abandoned is on the class."""

    abandoned = 0

    def __init__(self, poll: Callable[[], pa.RecordBatch]) -> None:
        self.result = poll

    def abandon(self) -> None:
        Polled.abandoned += 1


class Slow:
    """A partition of two records, whose leader has the second one only when it is asked for the second time."""

    def __init__(self) -> None:
        self._responses: list[int | None] = [0, None, 1]
        self._position = 0

    def assign(self, partitions: Any) -> None:
        """As the next one: where a consumer begins is not what is tested."""

    def seek(self, where: Any, offset: int) -> None: ...

    def fetch_until(self, where: Any, offset: int | None) -> None: ...

    def begin_poll_table(self, *_: Any, **limits: Any) -> Polled:
        return Polled(self._poll)

    def _poll(self) -> pa.RecordBatch:
        offset = self._responses.pop(0) if self._responses else None
        offsets = [] if offset is None else [offset]
        self._position += len(offsets)
        return pa.record_batch({"offset": pa.array(offsets, pa.int64())})

    def position(self, where: Any) -> int:
        return self._position

    def end_offsets(self, partitions: Any) -> dict[Any, int]:
        return dict.fromkeys(partitions, 2)


def reader(monkeypatch: pytest.MonkeyPatch, clock: Clock, consumer: Any, end: int) -> Any:
    monkeypatch.setattr(range_reader, "time", clock)
    monkeypatch.setattr(range_reader, "spark_batch", lambda table, **_: table)
    monkeypatch.setattr(range_reader._RangeReader, "_is_gone", lambda self: False)
    options = read_options({"kafka.bootstrap.servers": "h:1", "subscribe": "t"}, is_stream=True)
    offset_range = OffsetRange(topic="t", partition=0, start=0, end=end)
    return range_reader._RangeReader(consumer, offset_range, options)


def test_the_time_that_spark_takes_for_a_batch_is_no_time_without_a_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    read = []
    for batch in reader(monkeypatch, clock, Slow(), end=2).batches():
        read += batch["offset"].to_pylist()
        clock.now += HOUR_SECONDS
    assert read == [0, 1]


def test_a_partition_without_records_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, consumer = Clock(), Slow()
    asked = consumer._poll

    def waiting() -> pa.RecordBatch:
        clock.now += HOUR_SECONDS
        return asked()

    monkeypatch.setattr(consumer, "_poll", waiting)
    with pytest.raises(KafkaTimeoutError, match="no record of t-0 at offset 1"):
        list(reader(monkeypatch, clock, consumer, end=2).batches())


def test_the_next_table_is_made_while_spark_has_this_one_and_is_not_if_it_wants_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Polled, "abandoned", 0)
    consumer = Slow()
    begun = []
    begin = consumer.begin_poll_table
    monkeypatch.setattr(consumer, "begin_poll_table", lambda *a, **k: begun.append(1) or begin())
    batches = reader(monkeypatch, Clock(), consumer, end=2).batches()
    next(batches)
    assert len(begun) == 2
    batches.close()
    assert Polled.abandoned == 1

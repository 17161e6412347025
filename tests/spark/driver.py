"""A Spark driver that copies one topic into another exactly once and may kill itself on the way, as `kill -9` does.

    python -m tests.spark.driver BOOTSTRAP SOURCE TARGET DIRECTORY POINT

POINT is where to die: `before:mark:2` is before the second marker of this run, `after:commit:1` behind the first
commit, `task:70` when a task sees value 70 (once for each DIRECTORY), `-` nowhere.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from strandline.spark import exactly_once
from strandline.spark.batch_transaction import BatchTransaction
from tests.spark.sessions import session

OFFSETS_PER_BATCH = 60
RUN_SECONDS_MAX = 600


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def deadly(method: Callable[..., Any], when: str, count: int) -> Callable[..., Any]:
    calls = 0

    def called(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if when == "before" and calls == count:
            die()
        found = method(*arguments)
        if when == "after" and calls == count:
            die()
        return found

    return called


def killer(value: bytes, flag: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For tasks: passes rows on, and kills the driver at this value unless that happened before."""
    driver = os.getpid()

    def passed(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            if value in batch.column("value").to_pylist() and not flag.exists():
                flag.touch()
                os.kill(driver, signal.SIGKILL)

    return passed


def main(bootstrap: str, source: str, target: str, directory: Path, point: str) -> None:
    spark = session(directory / "spark")
    stream = (
        spark.readStream.format("strandline")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(OFFSETS_PER_BATCH))
        .load()
        .selectExpr("key", "value")
    )
    if point.startswith("task:"):
        value = point.removeprefix("task:")
        stream = stream.mapInArrow(killer(value.encode(), directory / f"task-{value}"), stream.schema)
    elif point != "-":
        when, step, count = point.split(":")
        setattr(BatchTransaction, step, deadly(getattr(BatchTransaction, step), when, int(count)))
    query = (
        exactly_once(stream, bootstrap, topic=target)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(RUN_SECONDS_MAX), "the query did not end"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), sys.argv[5])

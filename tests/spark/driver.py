"""A Spark driver that copies one topic into another exactly once and may kill itself on the way, as `kill -9` does.

    python -m tests.spark.driver BOOTSTRAP SOURCE TARGET DIRECTORY POINT [MASTER]

POINT is where to die: `before:mark:2` is before the second marker of this run, `after:commit:1` behind the first
commit, `task:70` when a task sees value 70 (once for each DIRECTORY), `-` nowhere. With `held:70` the task that has
written value 70 does not say so and waits for its executor to die; DIRECTORY/held tells where that is.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from strandline.spark import exactly_once
from strandline.spark.sink import task_writer
from strandline.spark.sink.batch_transaction import BatchTransaction
from tests.spark.sessions import session

OFFSETS_PER_BATCH = 60
RUN_SECONDS_MAX = 600
HELD_SECONDS_MAX = 90


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


def holder(value: bytes, flag: Path) -> Callable[..., Any]:
    """Makes writers of tasks, the first of which to have written this value waits for the death of its executor."""
    make = task_writer._writer

    def writer(*arguments: Any) -> Any:
        write = make(*arguments)

        def held(batches: Iterator[Any]) -> Iterator[Any]:
            seen: list[bytes] = []

            def watched() -> Iterator[Any]:
                for batch in batches:
                    seen.extend(batch.column("value").to_pylist())
                    yield batch

            reports = list(write(watched()))
            if value in seen and not flag.exists():
                partial = flag.with_suffix(".partial")
                partial.write_text(os.getcwd())
                partial.rename(flag)
                executor, deadline = os.getppid(), time.monotonic() + HELD_SECONDS_MAX
                while os.getppid() == executor:
                    assert time.monotonic() < deadline, "the executor was not killed"
                    time.sleep(0.05)
            yield from reports

        return held

    return writer


def main(
    bootstrap: str, source: str, target: str, directory: Path, point: str, master: str = "local[1]"
) -> None:
    # Two tasks write each batch. On one core they take turns in the same Python processes: each of those takes seconds
    # to start, and most drivers here do not live for long.
    more = {"spark_executor_memory": "700m", "spark_default_parallelism": "2"}
    spark = session(directory / "spark", master=master, **more)
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
    elif point.startswith("held:"):
        held: Any = holder(point.removeprefix("held:").encode(), directory / "held")
        task_writer._writer = held
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
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), *sys.argv[5:])

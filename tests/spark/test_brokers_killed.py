"""Brokers die by `kill -9` while the exactly-once sink writes: the leader of an output partition, in the middle of a
task's rows, and the coordinator of the transaction, between the marker and the commit. Every record is there once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.client.sync import Admin
from strandline.spark import exactly_once
from strandline.spark.sink import task_writer
from strandline.spark.sink.batch_transaction import BatchTransaction
from strandline.testing import cluster
from strandline.testing.clusters import Cluster, wait_until
from tests.spark.coordinators import coordinator_of
from tests.spark.exactly_once import PARTITIONS, assert_exact, fill

QUERY_SECONDS_MAX = 300
HEALED_SECONDS_MAX = 90
SINK = "kills"


def killing(pid: int, value: bytes, flag: Path) -> Callable[..., Any]:
    """Makes writers of tasks that kill a process when they have sent the rows up to this value, and go on."""
    make = task_writer._writer

    def writer(*arguments: Any) -> Any:
        write = make(*arguments)

        def written(batches: Iterator[Any]) -> Iterator[Any]:
            def watched() -> Iterator[Any]:
                for batch in batches:
                    for start in range(0, batch.num_rows, 10):
                        part = batch.slice(start, 10)
                        yield part
                        if value in part.column("value").to_pylist():
                            os.kill(pid, signal.SIGKILL)
                            flag.touch()

            return write(watched())

        return written

    return writer


class Killer:
    """Kills a broker in each of two batches, and heals the cluster before the next one."""

    def __init__(self, nodes: Cluster, admin: Admin, flag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._nodes = nodes
        self._admin = admin
        self._flag = flag
        self._monkeypatch = monkeypatch
        self._make = task_writer._writer
        self._begin, self._commit = BatchTransaction.begin, BatchTransaction.commit
        self.killed: list[str] = []
        self._dead: list[int] = []
        # Functions, not bound methods, so that they get the transaction.
        monkeypatch.setattr(BatchTransaction, "begin", lambda its: self._on_begin(its))  # noqa: PLW0108
        monkeypatch.setattr(BatchTransaction, "commit", lambda its: self._on_commit(its))  # noqa: PLW0108

    def _on_begin(self, transaction: BatchTransaction) -> None:
        self._heal()
        self._monkeypatch.setattr(task_writer, "_writer", self._make)  # a repetition kills nobody
        self._begin(transaction)
        if not self.killed:
            leader = self._admin.describe_topics(["out"])["out"].partitions[0].leader_id
            pid = self._nodes.node(leader).pid
            self._monkeypatch.setattr(task_writer, "_writer", killing(pid, b"5", self._flag))
            self._note("leader", leader)

    def _on_commit(self, transaction: BatchTransaction) -> None:
        if len(self.killed) == 1:
            self._heal()
            coordinator = coordinator_of(self._admin, SINK)
            self._nodes.node(coordinator).kill()
            self._note("coordinator", coordinator)
        self._commit(transaction)

    def _note(self, role: str, node_id: int) -> None:
        self.killed.append(f"{role} {node_id}")
        self._dead.append(node_id)

    def _heal(self) -> None:
        """All nodes run and are in sync: two dead ones at once would be more than three replicas survive."""
        while self._dead:
            node = self._nodes.node(self._dead.pop())
            node.kill()  # takes note of it, where a task did it
            node.start()
        wait_until(self._is_in_sync, HEALED_SECONDS_MAX)

    def _is_in_sync(self) -> bool:
        topics = self._admin.describe_topics(["in", "out", "__transaction_state"])
        return all(len(each.in_sync) == 3 for topic in topics.values() for each in topic.partitions)


def test_leaders_and_coordinators_die_and_every_record_is_there_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few partitions of the internal topic: fewer to elect and to wait for.
    with (
        cluster(nodes=3, transaction_state_log_num_partitions="3") as nodes,
        Admin(bootstrap_servers=nodes.bootstrap) as admin,
    ):
        admin.create_topic("in", partitions=2)
        admin.create_topic("out", partitions=PARTITIONS)
        fill(nodes.bootstrap, "in", range(180), keyed=False)
        with Admin(bootstrap_servers=nodes.bootstrap) as other:
            other.fence_producers([SINK])  # so that the internal topic is there
        killer = Killer(nodes, admin, tmp_path / "killed", monkeypatch)
        stream = (
            spark.readStream.format("strandline")
            .option("kafka.bootstrap.servers", nodes.bootstrap)
            .option("subscribe", "in")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "60")
            .load()
            .selectExpr("key", "value")
        )
        query = (
            exactly_once(stream, nodes.bootstrap, topic="out", name=SINK)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(QUERY_SECONDS_MAX), "the query did not end"
        assert (tmp_path / "killed").exists(), "no task came to the row at which the leader dies"
        assert [each.split()[0] for each in killer.killed] == ["leader", "coordinator"]
        assert_exact(nodes.bootstrap, "out", 180, f"after the death of {', '.join(killer.killed)}")

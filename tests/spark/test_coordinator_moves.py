"""The coordinator of a sink's transaction dies while tasks write: the next one carries the commit out."""

from __future__ import annotations

from strandline.client.sync import Admin, TransactionMember
from strandline.spark.sink.batch_decision import CommitMarker
from strandline.spark.sink.batch_transaction import BatchTransaction
from strandline.spark.sink.commit_markers import MarkerLog
from strandline.testing import cluster
from tests.spark.coordinators import coordinator_of
from tests.spark.topics import rows_of


def test_a_batch_survives_the_death_of_its_coordinator() -> None:
    with cluster(nodes=3) as nodes, Admin(bootstrap_servers=nodes.bootstrap) as admin:
        settings = {"bootstrap.servers": nodes.bootstrap}
        admin.create_topic("moves", partitions=2)
        log = MarkerLog(settings, "sink")
        transaction = BatchTransaction(settings, "sink", 60_000)
        transaction.begin()
        ticket = transaction.ticket
        with TransactionMember(settings, ticket=ticket) as task:
            for number in range(10):
                task.send("moves", b"%d" % number, partition=number % 2)
            task.flush()
            nodes.node(coordinator_of(admin, "sink")).kill()
            for number in range(10, 20):
                task.send("moves", b"%d" % number, partition=number % 2)
            task.flush()
        transaction.mark(log, CommitMarker(query_id="q", batch_id=0, rows=20))
        transaction.commit()
        transaction.close()
        assert log.last() == CommitMarker(query_id="q", batch_id=0, rows=20)
        log.close()
        assert sorted(int(row.value) for row in rows_of(nodes.bootstrap, "moves", 2)) == list(range(20))

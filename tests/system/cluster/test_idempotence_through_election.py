"""A producer retries a batch after the leader has died, step by step on real processes.

| step | what happens                                                                        |
| 1    | broker A leads; the producer sends sequences 100 to 109                             |
| 2    | A crashes before its answer arrives                                                 |
| 3    | B leads: what it knows of producers comes from its log                              |
| 4    | the producer sends the same batch again                                             |
| 5    | B has it: it answers with the offset that A gave. B has it not: it appends it       |
| 6    | the producer sends 110 to 119; B appends them                                       |
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from strandline.testing.clusters import Cluster, ClusterNode
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from tests.system.cluster import story
from tests.system.cluster.fetching import FETCH_WAIT_S
from tests.system.cluster.story import NONE, create, paused, read, shown, until_in_sync, write
from tests.waiting import eventually

OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47


@dataclass(frozen=True, slots=True)
class Idempotent:
    """A producer that is told what to send, sequence by sequence."""

    topic: str
    producer_id: int
    epoch: int

    def send(self, node: ClusterNode, first: int, *, acks: int = -1) -> tuple[int, int]:
        """Ten records from this sequence on: error code and offset."""
        return write(
            node,
            self.topic,
            values(first),
            acks=acks,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=first,
        )


def values(first: int) -> list[str]:
    return [f"s{number}" for number in range(first, first + 10)]


def producer(cluster: Cluster, topic: str) -> Idempotent:
    found = story.ask(
        cluster.node(1), InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4
    )
    assert found.error_code == NONE
    return Idempotent(topic, found.producer_id, found.producer_epoch)


def values_in(cluster: Cluster, topic: str) -> list[str]:
    return [value for _, value in read(cluster.bootstrap, topic)]


def test_a_batch_that_survived_gets_the_offset_of_the_old_leader_again(cluster: Cluster) -> None:
    create(cluster, "survived", configs={"min.insync.replicas": "2"})
    sender = producer(cluster, "survived")
    a, b = cluster.node(1), cluster.node(2)
    assert sender.send(a, 90) == (NONE, 0)
    assert sender.send(a, 100) == (NONE, 10)  # step 1; step 2: the producer never hears of it
    a.kill()
    eventually(lambda: shown(cluster, "survived").leader == 2)  # step 3
    assert sender.send(b, 100) == (NONE, 10)  # steps 4 and 5
    assert sender.send(b, 90) == (NONE, 0)
    assert sender.send(b, 110) == (NONE, 20)  # step 6
    assert sender.send(b, 130)[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    a.start()
    until_in_sync(cluster, "survived", [1, 2, 3])
    assert values_in(cluster, "survived") == values(90) + values(100) + values(110)


def test_a_batch_that_only_the_old_leader_had_is_appended_once(cluster: Cluster) -> None:
    create(cluster, "gone", configs={"min.insync.replicas": "2"})
    sender = producer(cluster, "gone")
    a, b, c = (cluster.node(n) for n in (1, 2, 3))
    assert sender.send(a, 90) == (NONE, 0)
    eventually(lambda: story.end_offset(a, "gone") == 10)
    with paused(b, c):
        time.sleep(FETCH_WAIT_S)  # so that no fetch of theirs is waiting at the leader
        assert sender.send(a, 100, acks=1) == (NONE, 10)  # step 1: written here, and nowhere else
        a.kill()  # step 2
    eventually(lambda: shown(cluster, "gone").leader == 2)  # step 3
    # Step 5, the other branch. Were 110 taken first, 100 to 109 could never be written.
    assert sender.send(b, 110)[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert sender.send(b, 100) == (NONE, 10)
    assert sender.send(b, 100) == (NONE, 10)
    assert sender.send(b, 110) == (NONE, 20)  # step 6
    a.start()
    until_in_sync(cluster, "gone", [1, 2, 3])
    assert values_in(cluster, "gone") == values(90) + values(100) + values(110)


def test_a_producer_that_begins_again_shuts_out_its_late_batches(cluster: Cluster) -> None:
    """The epoch of the producer's session is the same after an election."""
    create(cluster, "sessions", configs={"min.insync.replicas": "2"})
    old = producer(cluster, "sessions")
    new = Idempotent(old.topic, old.producer_id, old.epoch + 1)
    a, b = cluster.node(1), cluster.node(2)
    assert old.send(a, 0) == (NONE, 0)
    assert new.send(a, 0) == (NONE, 10)
    a.kill()
    eventually(lambda: shown(cluster, "sessions").leader == 2)
    assert old.send(b, 10)[0] == INVALID_PRODUCER_EPOCH
    assert new.send(b, 10) == (NONE, 20)
    assert values_in(cluster, "sessions") == values(0) + values(0) + values(10)

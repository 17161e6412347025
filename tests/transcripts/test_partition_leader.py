"""The leader of a partition: appends, fetches and decisions about the in-sync set in; watermark and set out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.base.errors import KafkaError
from strandline.partition.leader import PartitionLeader
from tests.transcripts.transcript import check, numbers

FILES = sorted((Path(__file__).parent / "partition_leader").glob("*.txt"))
LAG_MAX_S = 30.0


class Story:
    """`leader` begins; every other command is one call of it. Time is in seconds, and moves by `wait`."""

    def __init__(self) -> None:
        self.leader: PartitionLeader | None = None
        self.min_in_sync = 1
        self.now = 0.0

    def interpret(self, name: str, given: dict[str, str]) -> Iterator[str]:
        if name == "leader":
            self.min_in_sync = int(given["min"])
            self.leader = PartitionLeader(
                node_id=int(given["id"]),
                epoch=int(given["epoch"]),
                replicas=numbers(given["replicas"]),
                in_sync=numbers(given["in-sync"]),
                end_offset=int(given["end"]),
                high_watermark=int(given["hw"]),
                observers=frozenset(numbers(given.get("observers", ""))),
            )
            yield self.state()
            return
        assert self.leader is not None, "a transcript begins with `leader`"
        try:
            yield from getattr(self, name.replace("-", "_"))(self.leader, given)
        except KafkaError as error:
            yield str(error)
        self.leader.check_invariants()
        yield self.state()

    def append(self, leader: PartitionLeader, given: dict[str, str]) -> Iterator[str]:
        leader.appended(int(given["end"]), self.min_in_sync)
        return iter(())

    def fetch(self, leader: PartitionLeader, given: dict[str, str]) -> Iterator[str]:
        replica, is_alive = int(given["from"]), given.get("alive", "yes") == "yes"
        leader.fetched(replica, int(given["offset"]), 0, 1, self.min_in_sync, self.now)
        if replica not in leader.in_sync:
            leader.wait_for(replica, is_alive)
            if leader.may_join(replica, is_alive):
                yield f"{replica} may join the in-sync set"

    def wait(self, leader: PartitionLeader, given: dict[str, str]) -> Iterator[str]:
        self.now += float(given["seconds"])
        lagging = leader.lagging(LAG_MAX_S, self.now)
        if lagging:
            yield f"lagging: {_listed(lagging)}"

    def propose(self, leader: PartitionLeader, given: dict[str, str]) -> Iterator[str]:
        leader.propose(numbers(given["in-sync"]))
        return iter(())

    def decided(self, leader: PartitionLeader, given: dict[str, str]) -> Iterator[str]:
        leader.decided(numbers(given["in-sync"]), int(given["epoch"]), self.min_in_sync)
        return iter(())

    def refused(self, leader: PartitionLeader, given: dict[str, str]) -> Iterator[str]:
        leader.proposal_failed()
        return iter(())

    def write_with_acks_all(self, leader: PartitionLeader, given: dict[str, str]) -> Iterator[str]:
        leader.check_acks_all(self.min_in_sync)
        yield "accepted"

    def state(self) -> str:
        leader = self.leader
        assert leader is not None
        ends = [
            f"{replica}:{'?' if (end := leader.end_offset_of(replica)) < 0 else end}"
            for replica in (*leader.replicas, *sorted(leader.observers))
        ]
        asked = "" if leader.proposed is None else f" asked {_listed(leader.proposed)}"
        return (
            f"  hw {leader.high_watermark}  in sync {_listed(leader.in_sync)}{asked}  ends {' '.join(ends)}"
        )


def _listed(replicas: tuple[int, ...]) -> str:
    return ",".join(map(str, replicas))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_transcript(path: Path, request: pytest.FixtureRequest) -> None:
    check(path, Story().interpret, rewrite=bool(request.config.getoption("--rewrite", False)))

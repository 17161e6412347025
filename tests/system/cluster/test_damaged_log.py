"""Bytes of a leader's log change on its disk: another replica leads, and the damaged one is fetched again."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import ElectionType, TopicPartition

from strandline.testing.clusters import Cluster, ClusterNode
from strandline.wire.record_batch import headers_in
from tests.system.cluster import story
from tests.system.cluster.story import NONE, create, read, shown, told, until_in_sync, write
from tests.waiting import eventually

TOPIC = "damaged"
RECORDS = [f"{n} " + "x" * 1000 for n in range(60)]


def segments(node: ClusterNode) -> list[Path]:
    return sorted((node.data_dir / f"{TOPIC}-0").glob("*.log"))


def content(node: ClusterNode) -> bytes:
    return b"".join(path.read_bytes() for path in segments(node))


def damage(path: Path, position: int, size: int = 16) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        old = file.read(size)
        file.seek(position)
        file.write(bytes(byte ^ 0xFF for byte in old))


def test_a_leader_with_a_damaged_log_is_replaced_and_healed(cluster: Cluster) -> None:
    create(cluster, TOPIC, configs={"internal.segment.bytes": "10000", "min.insync.replicas": "2"})
    leader = cluster.node(1)
    for value in RECORDS:
        assert write(leader, TOPIC, [value])[0] == NONE
    eventually(lambda: content(cluster.node(2)) == content(cluster.node(3)) == content(leader))
    assert [value for _, value in read(cluster.bootstrap, TOPIC)] == RECORDS
    path = segments(leader)[2]
    position, header = list(headers_in(path.read_bytes()))[4]
    damage(path, position + header.size // 2)
    damaged = content(leader)

    # A consumer notices nothing but another leader.
    assert [value for _, value in read(cluster.bootstrap, TOPIC)] == RECORDS
    assert shown(cluster, TOPIC).leader != 1
    said = [line for line in leader.log_text.splitlines() if "a log is damaged" in line]
    assert len(said) == 1
    assert f"file={path}" in said[0]
    assert f"position={position}" in said[0]

    until_in_sync(cluster, TOPIC, [1, 2, 3])
    eventually(lambda: content(leader) == content(cluster.node(2)) == content(cluster.node(3)))
    assert content(leader) != damaged
    assert told(cluster, "a damaged log is fetched again") == 1

    # It can lead again.
    assert write(cluster.node(shown(cluster, TOPIC).leader), TOPIC, ["after"]) == (NONE, len(RECORDS))
    until_in_sync(cluster, TOPIC, [1, 2, 3])
    admin = story.admin(cluster)
    admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(TOPIC, 0)]).result(30)
    eventually(lambda: shown(cluster, TOPIC).leader == 1)
    assert [value for _, value in read(cluster.bootstrap, TOPIC)] == [*RECORDS, "after"]

"""Java's MirrorClient and RemoteClusterUtils read what our mirror writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.testing.clusters import wait_until
from tests.mirror.groups import SYNCED, consume
from tests.mirror.scene import Scene
from tests.oracle.fetch import JAVA, KAFKA_MIRROR_JARS
from tests.oracle.java_worker import JavaWorker
from tests.oracle.require import require

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]


def test_java_finds_clusters_topics_and_translated_offsets(two: Scene) -> None:
    source = Path(__file__).parent / "java" / "MirrorClients.java"
    java = JavaWorker(java=require(JAVA), jars=require(KAFKA_MIRROR_JARS), source=source)
    two.create_topic("east", "asked", 1)
    config = two.config(
        {
            **SYNCED,
            "east->west.topics": "asked",
            "strandline.transaction.bytes": "1000",
            "emit.heartbeats.enabled": "true",
            "emit.heartbeats.interval.seconds": "0.5",
        }
    )
    two.mirror(config).start()
    for part in range(3):
        two.produce("east", "asked", [f"v{part * 50 + n}" for n in range(50)])
        copied = two.read("west", "east.asked", (part + 1) * 50)
    consume(two, "east", "asked", "billing", 101)
    expected = next(m.offset() for m in copied if m.value() == b"v101")
    question = {"bootstrap": two.bootstrap["west"], "alias": "east", "group": "billing"}
    try:
        wait_until(
            lambda: java.call(question, timeout_s=60)["offsets"].get("east.asked-0") == expected,
            60,
            "Java does not see the exact offset",
        )
        seen = java.call(question, timeout_s=60)
    finally:
        java.close()

    assert seen["upstream"] == ["east"]
    assert seen["hops"] == 1
    assert "east.asked" in seen["topics"]
    assert seen["heartbeats"] == ["east.heartbeats", "heartbeats"]
    assert seen["checkpoints"] == ["east.checkpoints.internal"]

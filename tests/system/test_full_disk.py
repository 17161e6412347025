"""A really full disk: KAFKA_STORAGE_ERROR, everything else goes on, and writes resume when there is room."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from strandline.base.errors import ErrorCode
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest
from tests.compat.wire import WireClient
from tests.system.commands import bootstrap_of, command, one_node, properties
from tests.system.records import EACH, append, count, create
from tests.system.volumes import on_small_volume

SIZE = "6m"


@pytest.mark.timeout(300)
def test_full_volume_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    settings = one_node(tmp_path / "unused", log_segment_delete_delay_ms="0") | {
        "log.dirs": f"{large},{small}",
        "log.segment.bytes": "1048576",
    }
    config = properties(tmp_path / "p", settings)
    with command("server", "--config", config, prefix=on_small_volume(small, SIZE)) as running:
        bootstrap = bootstrap_of(running)
        with WireClient(bootstrap) as client:
            # The directory with the fewest partitions gets the next: every second topic is on the small volume.
            for topic in ("calm", "full", "calm2", "ballast"):
                create(client, topic)
                assert append(client, topic, 100) == ErrorCode.NONE
            for _ in range(10):
                assert append(client, "ballast") == ErrorCode.NONE
            written = 1
            while (code := append(client, "full")) == ErrorCode.NONE:
                written += 1
                assert written < 50
            assert code == ErrorCode.KAFKA_STORAGE_ERROR
            assert append(client, "full") == ErrorCode.KAFKA_STORAGE_ERROR
            assert count(client, "full") == written, "reads go on, and nothing is torn"
            assert append(client, "calm") == ErrorCode.NONE, "so do the partitions of other directories"
            create(client, "later")
            answer = client.call(DeleteTopicsRequest(topic_names=("ballast",), timeout_ms=1000), 4)
            assert answer.responses[0].error_code == ErrorCode.NONE  # type: ignore[attr-defined]
            deadline = time.monotonic() + 90
            while append(client, "full") != ErrorCode.NONE:
                assert time.monotonic() < deadline, "writes resume when there is room"
                time.sleep(0.1)
            assert count(client, "full") == written + 1
        assert running.stop() == 0
        assert any("disk full" in line for line in running.err)
        assert not any("offline" in line or "halted" in line for line in running.err)


@pytest.mark.timeout(300)
def test_full_volume_with_the_metadata_on_it_leaves_the_node_alive(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    config = properties(tmp_path / "p", one_node(data, log_segment_bytes="1048576"))
    with command("server", "--config", config, prefix=on_small_volume(data, SIZE)) as running:
        bootstrap = bootstrap_of(running)
        with WireClient(bootstrap) as client:
            create(client, "t")
            written = 0
            for size in (EACH, 5000, 100):
                while append(client, "t", size) == ErrorCode.NONE:
                    written += 1
            codes = set()
            for number in range(200):
                new = CreatableTopic(
                    name=f"new{number}", num_partitions=9, replication_factor=1, assignments=(), configs=()
                )
                answer = client.call(CreateTopicsRequest(topics=(new,), timeout_ms=1000), 5)
                codes.add(ErrorCode(answer.topics[0].error_code))  # type: ignore[attr-defined]
            assert codes <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
            assert ErrorCode.KAFKA_STORAGE_ERROR in codes
            assert count(client, "t") == written
        running.stop()
        assert not any("halted" in line for line in running.err)

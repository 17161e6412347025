"""What users import in their tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strandline.config import InvalidConfig
from strandline.storage.directory import UnusableDirectory
from strandline.testing import broker, running_broker
from strandline.testing.embedded import by_kafka_names
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.compat.wire import WireClient

pytest_plugins = ["pytester"]


def topics_of(bootstrap: str, name: str) -> int:
    with WireClient(bootstrap) as client:
        answer = client.call(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 9)
    return len(answer.topics[0].partitions)  # type: ignore[attr-defined]


def test_an_embedded_broker_serves_takes_settings_and_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> Path:
        async with broker(num_partitions="3") as b:
            assert b.data_dir.is_dir()
            assert await asyncio.to_thread(topics_of, b.bootstrap, "t") == 3
            return b.data_dir

    assert not asyncio.run(main()).exists()


def test_embedded_brokers_live_side_by_side_and_keep_data_where_they_are_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with broker(data_dir=tmp_path / "a") as first, broker(data_dir=tmp_path / "b") as second:
            assert first.bootstrap != second.bootstrap
        async with broker(data_dir=tmp_path / "a", node_id="1"):
            pass

    asyncio.run(main())
    assert (tmp_path / "a" / "meta.properties").exists()


def test_a_broker_that_cannot_start_says_why_and_frees_what_it_took(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(InvalidConfig, match=r"num\.partitions"):
            async with broker(num_partitions="0"):
                pass
        async with broker(data_dir=tmp_path / "a"):
            with pytest.raises(UnusableDirectory):
                async with broker(data_dir=tmp_path / "a"):
                    pass
        async with broker(data_dir=tmp_path / "a"):
            pass

    asyncio.run(main())


def test_a_blocking_broker_runs_in_a_process_of_its_own() -> None:
    with running_broker(num_partitions="2") as running:
        assert running.pid > 0
        assert topics_of(running.bootstrap, "t") == 2
        home = running.data_dir.parent
    assert not home.exists()


def test_a_process_keeps_its_port_over_a_restart(tmp_path: Path) -> None:
    with running_broker(data_dir=tmp_path / "data") as running:
        first = running.bootstrap
        running.kill()
        running.start()
        assert running.bootstrap == first


def test_a_process_that_does_not_start_says_why() -> None:
    with pytest.raises(RuntimeError, match=r"num\.partitions"), running_broker(num_partitions="-7"):
        pass


def test_names_of_settings_have_underscores_for_dots() -> None:
    assert by_kafka_names({"log_retention_ms": "5", "a.b": "c"}) == {"log.retention.ms": "5", "a.b": "c"}


def test_the_plugin_s_fixtures_give_a_broker_and_a_topic_of_the_test_s_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from confluent_kafka import Producer

        seen = []

        def write(broker, topic):
            producer = Producer({"bootstrap.servers": broker.bootstrap})
            errors = []
            producer.produce(topic, b"v", on_delivery=lambda error, message: errors.append((error, message.offset())))
            assert producer.flush(60) == 0
            seen.append((broker.pid, topic))
            return errors

        def test_one(strandline_broker, strandline_topic):
            assert write(strandline_broker, strandline_topic) == [(None, 0)]

        def test_two(strandline_broker, strandline_topic):
            assert write(strandline_broker, strandline_topic) == [(None, 0)]
            assert seen[0][0] == seen[1][0], "one broker for the session"
            assert seen[0][1] != seen[1][1], "a topic for each test"

        def test_x_with_a_strange_name(strandline_topic, request):
            assert strandline_topic.startswith("test_x_with_a_strange_name-")
        """
    )
    result = pytester.runpytest_subprocess(
        "-q", "-p", "no:xdist", "-p", "no:timeout", "-p", "no:hypothesispytest"
    )
    result.assert_outcomes(passed=3)


def test_real_clients_work_with_an_embedded_broker_from_another_thread() -> None:
    async def main() -> None:
        async with broker() as b:
            producer = Producer({"bootstrap.servers": b.bootstrap, "log_level": 0})
            producer.produce("t", b"v")
            assert await asyncio.to_thread(producer.flush, 20) == 0

    asyncio.run(main())

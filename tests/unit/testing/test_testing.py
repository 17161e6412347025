"""The names that users import in their tests."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strandline import testing
from strandline.broker.broker import Broker
from strandline.broker.coordinator.auto_topic_creation import AutoTopicCreation
from strandline.broker.metadata.raft_node import RaftNode
from strandline.config import InvalidConfig
from strandline.node.launcher import CONTROL_FD
from strandline.storage.directory import UnusableDirectory
from strandline.testing import (
    BrokerHalted,
    BrokerProcess,
    Cluster,
    ClusterNode,
    broker,
    process,
    running_broker,
    running_cluster,
)
from strandline.testing.embedded import by_kafka_names
from strandline.testing.fault_channels import BrokerGone
from strandline.testing.process import stopping
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.compat.wire import WireClient


def topics_of(bootstrap: str, name: str) -> int:
    with WireClient(bootstrap) as client:
        response = client.call(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 9)
    return len(response.topics[0].partitions)  # type: ignore[attr-defined]


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


def test_variables_in_settings_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_TEST_COUNT", "3")
    settings = {
        "num_partitions": "${env:STRANDLINE_TEST_COUNT}",
        "config_providers": "env",
        "config_providers_env_class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }

    async def main() -> None:
        async with broker(**settings) as b:
            assert await asyncio.to_thread(topics_of, b.bootstrap, "t") == 3

    asyncio.run(main())
    Cluster(tmp_path, 1, by_kafka_names(settings))  # checks them; its nodes read them themselves


@pytest.mark.parametrize(("setting", "number"), [("node_id", 0), ("broker_id", 7)])
def test_a_broker_that_is_alone_takes_any_number(setting: str, number: int) -> None:
    def nodes_of(bootstrap: str) -> list[int]:
        with WireClient(bootstrap) as client:
            response = client.call(MetadataRequest(topics=()), 9)
        return [node.node_id for node in response.brokers]  # type: ignore[attr-defined]

    async def main() -> list[int]:
        async with broker(**{setting: str(number)}) as b:
            return await asyncio.to_thread(nodes_of, b.bootstrap)

    assert asyncio.run(main()) == [number]


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


def test_nodes_that_take_no_faults_are_started_without_the_switches_of_faults(tmp_path: Path) -> None:
    plain = Cluster(tmp_path, 1, {}, takes_faults=False)
    with stopping(plain.stop):
        plain.start()
        [node] = plain.nodes
        assert topics_of(node.bootstrap, "t") == 1
        assert CONTROL_FD.encode() not in Path(f"/proc/{node.pid}/environ").read_bytes()
        with pytest.raises(BrokerGone, match="was started without faults"):
            node.faults.clear()


def test_a_process_keeps_its_port_over_a_restart(tmp_path: Path) -> None:
    with running_broker(data_dir=tmp_path / "data") as running:
        first = running.bootstrap
        running.kill()
        running.start()
        assert running.bootstrap == first


def test_a_process_keeps_its_data_where_it_is_told_whatever_the_path_has_in_it(tmp_path: Path) -> None:
    data = tmp_path / "back\\slash \xfc # ! : = ${x}" / "new\\t"
    data.parent.mkdir()
    with running_broker(data_dir=data):
        assert (data / "meta.properties").exists()
    assert [each.name for each in tmp_path.iterdir()] == [data.parent.name]


def test_a_path_that_settings_cannot_name_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with broker(data_dir=tmp_path / "x,y"):
            pass

    with pytest.raises(UnusableDirectory, match="has a comma"):
        asyncio.run(main())
    with pytest.raises(UnusableDirectory, match="has a comma"):
        Cluster(tmp_path / "x,y", 3, {})
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_holds_its_directory_from_the_start_to_the_stop(tmp_path: Path) -> None:
    first, second = Cluster(tmp_path, 2, {}), Cluster(tmp_path, 2, {})
    assert list(tmp_path.iterdir()) == [], "until it is prepared there is nothing"
    first.prepare()
    first.prepare()  # as its start does
    with pytest.raises(UnusableDirectory, match=f"in use by process {os.getpid()}"):
        second.prepare()
    first.stop()
    second.prepare()
    assert second.cluster_id == first.cluster_id
    second.stop()
    with pytest.raises(UnusableDirectory, match="a cluster of 2 nodes, not of 3"):
        Cluster(tmp_path, 3, {}).prepare()


def test_a_process_that_does_not_start_says_why() -> None:
    with pytest.raises(RuntimeError, match=r"num\.partitions"), running_broker(num_partitions="-7"):
        pass


def test_a_process_that_is_never_ready_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(BrokerProcess):
        def launch(self) -> None:
            self._process = subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(process, "READY_SECONDS_MAX", 0.1)
    silent = Silent(tmp_path / "data")
    with pytest.raises(RuntimeError, match=r"not ready within 0\.1 s"):
        silent.start()
    silent.stop()


def test_a_node_that_does_not_stop_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path, 3, {})
    stopped = []

    def stop(node: ClusterNode) -> None:
        stopped.append(node.node_id)
        if node.node_id == 2:
            raise RuntimeError("the broker did not stop")

    monkeypatch.setattr(ClusterNode, "stop", stop)
    with pytest.raises(RuntimeError):
        cluster.stop()
    assert stopped == [1, 2, 3]


# As a broker does, it takes the signal itself: one that a signal just ends can be ended while it is paused, too.
STAND_IN = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready bootstrap.servers=localhost:9092", flush=True)
signal.pause()
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerProcess]:
    """A process that is ready at once and ends on a signal, in the place of a broker's."""
    started = subprocess.Popen

    def start(command: list[str], **options: Any) -> subprocess.Popen[str]:
        return started([command[0], "-S", "-c", STAND_IN], **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(process, "STOP_SECONDS_MAX", 5)
    broker = BrokerProcess(tmp_path / "data")
    broker.start()
    yield broker
    broker.kill()


@pytest.mark.parametrize("is_asked_before", [False, True])
def test_a_paused_process_is_stopped_in_order(is_asked_before: bool, stand_in: BrokerProcess) -> None:
    stand_in.pause()
    if is_asked_before:
        stand_in.ask_to_stop()
    assert stand_in.stop() == 0


def test_a_cluster_resumes_its_paused_nodes_before_it_stops_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    monkeypatch.setattr(ClusterNode, "is_running", property(lambda node: node.node_id != 3))
    monkeypatch.setattr(ClusterNode, "resume", lambda node: done.append(("resume", node.node_id)))
    monkeypatch.setattr(ClusterNode, "stop", lambda node: done.append(("stop", node.node_id)))
    Cluster(tmp_path, 3, {}).stop()
    assert done == [("resume", 1), ("resume", 2), ("stop", 1), ("stop", 2), ("stop", 3)]


@pytest.mark.parametrize("started", [running_broker, partial(running_cluster, nodes=1)])
def test_a_broker_that_does_not_stop_does_not_hide_why_a_test_failed(
    started: Callable[[], AbstractContextManager[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: BrokerProcess | Cluster) -> None:
        raise RuntimeError("the broker did not stop")

    monkeypatch.setattr(BrokerProcess, "start", lambda _: None)
    monkeypatch.setattr(Cluster, "start", lambda _: None)
    monkeypatch.setattr(BrokerProcess, "stop", stop)
    monkeypatch.setattr(Cluster, "kill", stop)
    with pytest.raises(LookupError, match="of the test itself") as failure, started():
        raise LookupError("of the test itself")
    assert failure.value.__notes__ == ["Besides, the broker did not stop"]
    with pytest.raises(RuntimeError, match="did not stop"), started():
        pass


def test_a_process_that_ends_by_itself_is_noticed_and_can_be_started_again(stand_in: BrokerProcess) -> None:
    assert stand_in.is_running
    crashed = stand_in._process
    assert crashed is not None
    assert crashed.stdout is not None
    os.kill(stand_in.pid, signal.SIGKILL)
    os.waitid(os.P_PID, stand_in.pid, os.WEXITED | os.WNOWAIT)
    assert not stand_in.is_running
    stand_in.start()
    assert stand_in.is_running
    assert stand_in.pid != crashed.pid
    assert crashed.stdout.closed


def test_a_process_that_runs_is_not_started_a_second_time(stand_in: BrokerProcess) -> None:
    first = stand_in.pid
    with pytest.raises(RuntimeError, match=f"runs already, as process {first}"):
        stand_in.start()
    assert stand_in.pid == first


def test_names_of_settings_have_underscores_for_dots() -> None:
    assert by_kafka_names({"log_retention_ms": "5", "a.b": "c"}) == {"log.retention.ms": "5", "a.b": "c"}


def test_the_plugin_loads_no_broker_and_no_client_until_a_fixture_is_used() -> None:
    script = (
        "import sys, strandline.testing.pytest_plugin;"
        "print(*sorted(name for name in sys.modules if name.startswith('strandline')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    plugin = ["strandline.testing", "strandline.testing.pytest_plugin"]
    assert ran.stdout.split() == ["strandline", "strandline.base", "strandline.base.lazy_names", *plugin]


def test_every_name_of_the_package_is_found_and_listed() -> None:
    assert set(testing.__all__) <= set(dir(testing))
    assert all(getattr(testing, name).__module__.startswith("strandline.") for name in testing.__all__)
    assert not hasattr(testing, "no_such_name")


def test_real_clients_work_with_an_embedded_broker_from_another_thread() -> None:
    async def main() -> None:
        async with broker() as b:
            producer = Producer({"bootstrap.servers": b.bootstrap, "log_level": 0})
            producer.produce("t", b"v")
            assert await asyncio.to_thread(producer.flush, 20) == 0

    asyncio.run(main())


def test_a_broker_whose_port_is_taken_gives_its_directory_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with broker() as other:
            taken = f"PLAINTEXT://{other.bootstrap}"
            with pytest.raises(OSError, match="in use"):
                async with broker(data_dir=tmp_path / "a", listeners=f"{taken},CONTROLLER://127.0.0.1:0"):
                    pass
        async with broker(data_dir=tmp_path / "a") as b:
            assert await asyncio.to_thread(topics_of, b.bootstrap, "t") == 1
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_stopped_broker_is_collected() -> None:
    left: list[weakref.ref[Broker]] = []
    made = Broker.__init__

    def remember(self: Broker, *arguments: Any) -> None:
        made(self, *arguments)
        left.append(weakref.ref(self))

    async def main() -> None:
        async with broker() as b:
            await asyncio.to_thread(topics_of, b.bootstrap, "t")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Broker, "__init__", remember)
        asyncio.run(main())
    gc.collect()
    assert [found() for found in left] == [None]


@pytest.mark.parametrize("moment", ["while it serves", "while it starts"])
def test_a_broker_that_halts_fails_its_test_and_not_the_whole_run(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise AssertionError("an offset went back")

    async def main() -> None:
        if moment == "while it starts":
            monkeypatch.setattr(RaftNode, "_write_one", broken)
        async with broker(data_dir=tmp_path / "a") as b:
            monkeypatch.setattr(AutoTopicCreation, "_ask_controller", broken)
            await asyncio.to_thread(topics_of, b.bootstrap, "t")

    with pytest.raises(BrokerHalted, match="an offset went back"):
        asyncio.run(main())
    monkeypatch.undo()

    async def again() -> None:
        async with broker(data_dir=tmp_path / "a"):
            pass

    asyncio.run(again())

"""`strandline server` and `strandline up`: what they make of configurations, directories and listeners."""

from __future__ import annotations

import json
import re
import socket
import stat
from pathlib import Path

import pytest

from strandline.testing.clusters import free_ports
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataResponse
from tests.compat.wire import WireClient
from tests.system.commands import bootstrap_of, command, one_node, properties


def metadata(bootstrap: str) -> MetadataResponse:
    with WireClient(bootstrap) as client:
        answer = client.call(MetadataRequest(topics=None), 9)
    assert isinstance(answer, MetadataResponse)
    return answer


def test_an_unknown_key_is_warned_of_with_the_nearest_name(tmp_path: Path) -> None:
    config = properties(tmp_path / "p", one_node(tmp_path / "data", log_retention_hour="5", retention_ms="1"))
    with command("server", "--config", config) as running:
        bootstrap_of(running)
        assert "log.retention.hours" in running.wait_for("key=log.retention.hour ", in_err=True)
        assert "log.retention.ms" in running.wait_for("key=retention.ms ", in_err=True)
        assert running.stop() == 0


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("num.partitions", "0", ["num.partitions", "0", "at least 1"]),
        ("num.partitions", "many", ["num.partitions", "many"]),
        ("log.retention.ms", "0", ["log.retention.ms", "0"]),
        ("compression.type", "rar", ["compression.type", "rar", "zstd"]),
        (
            "listeners",
            "PLAINTEXT://127.0.0.1:99999,CONTROLLER://127.0.0.1:0",
            ["listeners", "99999", "65535"],
        ),
        ("queued.max.request.bytes", "5", ["queued.max.request.bytes", "socket.request.max.bytes"]),
    ],
)
def test_a_bad_value_stops_the_start_and_is_named_with_the_allowed_values(
    tmp_path: Path, key: str, value: str, said: list[str]
) -> None:
    config = properties(tmp_path / "p", one_node(tmp_path / "data") | {key: value})
    with command("server", "--config", config) as running:
        assert running.wait() == 2
        complaint = " ".join(running.err)
        assert all(word in complaint for word in said), complaint
        assert "Traceback" not in complaint
        assert not (tmp_path / "data").exists(), "nothing is made before the configuration is good"


def test_a_file_that_is_not_there_or_makes_no_sense_stops(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none", "cannot be read"), (tmp_path, "cannot be read")):
        with command("server", "--config", str(path)) as running:
            assert running.wait() == 2
            assert said in " ".join(running.err)


def test_a_required_key_that_is_missing_is_named(tmp_path: Path) -> None:
    config = properties(tmp_path / "p", {"process.roles": "broker,controller"})
    with command("server", "--config", config) as running:
        assert running.wait() == 2
        assert re.search(r"node\.id|controller\.", " ".join(running.err))


def test_the_empty_directory_of_one_node_is_formatted_and_found_again(tmp_path: Path) -> None:
    config = properties(tmp_path / "p", one_node(tmp_path / "data"))
    clusters = []
    for _ in range(2):
        with command("server", "--config", config) as running:
            clusters.append(metadata(bootstrap_of(running)).cluster_id)
            assert running.stop() == 0
            formatted = [line for line in running.err if "formatted" in line]
            assert len(formatted) == (1 if len(clusters) == 1 else 0)
    assert clusters[0] == clusters[1]
    assert (tmp_path / "data" / "bootstrap.checkpoint").exists()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    config = properties(tmp_path / "p", one_node(tmp_path / "data"))
    with command("server", "--config", config) as first:
        bootstrap_of(first)
        with command("server", "--config", config) as second:
            assert second.wait() == 2
            assert f"in use by process {first.pid}; stop it" in " ".join(second.err)
        assert metadata(bootstrap_of(first)).brokers
        first.kill()
    with command("server", "--config", config) as third:
        bootstrap_of(third)
        assert third.stop() == 0


def test_another_node_s_directory_is_refused(tmp_path: Path) -> None:
    with command("server", "--config", properties(tmp_path / "p", one_node(tmp_path / "data"))) as first:
        bootstrap_of(first)
        first.stop()
    other = one_node(tmp_path / "data") | {"node.id": "2", "controller.quorum.voters": "2@127.0.0.1:1"}
    with command("server", "--config", properties(tmp_path / "q", other)) as second:
        assert second.wait() == 2
        assert "belongs to node 1, and this is node 2" in " ".join(second.err)


def test_a_directory_with_partitions_and_no_identity_is_not_formatted_over(tmp_path: Path) -> None:
    (tmp_path / "data" / "t-0").mkdir(parents=True)
    with command("server", "--config", properties(tmp_path / "p", one_node(tmp_path / "data"))) as running:
        assert running.wait() == 2
        assert "not formatted over" in " ".join(running.err)


def test_a_port_that_is_taken_stops_with_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = one_node(tmp_path / "data") | {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }
        with command("server", "--config", properties(tmp_path / "p", settings)) as running:
            assert running.wait() == 2
            complaint = " ".join(running.err)
            assert f"127.0.0.1:{port}: Address already in use" in complaint
            assert "--port 0" in complaint
            assert "Traceback" not in complaint
    assert not (tmp_path / "data").exists(), "a refused start formats nothing"


def test_a_broker_of_another_cluster_prints_the_remedy(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    controller = {
        "process.roles": "controller",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "controller.quorum.voters": f"1@127.0.0.1:{port}",
    }
    broker = {
        **controller,
        "process.roles": "broker",
        "node.id": "2",
        "listeners": "PLAINTEXT://127.0.0.1:0",
    }
    settings = one_node(tmp_path / "controller") | controller
    del settings["advertised.listeners"]
    config = properties(tmp_path / "q", one_node(tmp_path / "broker") | broker)
    with command("format", "--config", config) as formatted:
        assert formatted.wait() == 0, formatted.err
    with command("server", "--config", properties(tmp_path / "p", settings)) as first:
        first.wait_for("ready")
        with command("server", "--config", config) as second:
            assert second.wait() == 2
            complaint = " ".join(second.err)
        assert "the controllers refuse broker 2 (INCONSISTENT_CLUSTER_ID)" in complaint
        assert "strandline format --cluster-id" in complaint
        assert "Traceback" not in complaint


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_each_listener_advertises_its_own_real_port(tmp_path: Path) -> None:
    settings = one_node(tmp_path / "data") | {
        "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:0,OTHER://localhost:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    with command("server", "--config", properties(tmp_path / "p", settings)) as running:
        first = bootstrap_of(running)
        (plain,) = metadata(first).brokers
        assert f"{plain.host}:{plain.port}" == first
        ports = listening_ports(running._process.pid)
        (other,) = ports - {plain.port}
        (told,) = metadata(f"127.0.0.1:{other}").brokers
        assert (told.host, told.port) == ("localhost", other)
        assert running.stop() == 0


def listening_ports(pid: int) -> set[int]:
    """Ports of the sockets that a process listens on."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        target = entry.readlink() if entry.is_symlink() else Path()
        if str(target).startswith("socket:["):
            inodes.add(str(target)[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(int(fields[1].rpartition(":")[2], 16))
    return found


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback address")
def test_ipv6_listeners_are_bound_advertised_and_printed(tmp_path: Path) -> None:
    settings = one_node(tmp_path / "data") | {
        "listeners": "PLAINTEXT://[::1]:0,CONTROLLER://[::1]:0",
        "advertised.listeners": "PLAINTEXT://[::1]:0",
    }
    with command("server", "--config", properties(tmp_path / "p", settings)) as running:
        bootstrap = bootstrap_of(running)
        assert re.fullmatch(r"\[::1\]:\d+", bootstrap)
        (broker,) = metadata(bootstrap.replace("[", "").replace("]", "")).brokers
        assert broker.host == "::1"
        assert running.stop() == 0


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback address")
def test_every_interface_has_one_port_for_both_families(tmp_path: Path) -> None:
    settings = one_node(tmp_path / "data") | {
        "listeners": "PLAINTEXT://:0,CONTROLLER://:0",
        "advertised.listeners": "PLAINTEXT://localhost:0",
    }
    with command("server", "--config", properties(tmp_path / "p", settings)) as running:
        port = bootstrap_of(running).rpartition(":")[2]
        for host in ("127.0.0.1", "::1"):
            (broker,) = metadata(f"{host}:{port}").brokers
            assert str(broker.port) == port
        assert running.stop() == 0


def test_up_prints_the_address_for_clients_and_leaves_no_files(tmp_path: Path) -> None:
    with command("up", "--ephemeral", "--port", "0", cwd=tmp_path) as running:
        bootstrap = running.wait_for("bootstrap.servers").split()[-1]
        data = Path(re.sub(r" \(gone.*", "", running.wait_for("  data ").split(maxsplit=1)[1]))
        running.wait_for("Stop with")
        assert data.is_dir()
        assert metadata(bootstrap.replace("localhost", "127.0.0.1")).brokers
        assert running.stop() == 0
        assert not data.exists()
    assert list(tmp_path.iterdir()) == []


def test_up_keeps_its_data_where_it_stands_and_takes_any_setting(tmp_path: Path) -> None:
    for _ in range(2):
        with command("up", "--port", "0", "--set", "num.partitions=3", cwd=tmp_path) as running:
            running.wait_for("Stop with")
            assert running.stop() == 0
    assert (tmp_path / "strandline-data" / "meta.properties").exists()
    for arguments, said in (
        (("--set", "num.partitions"), "KEY=VALUE"),
        (("--set", "num.partitions=x"), "num.partitions"),
        (("--port", "70000"), "65535"),
    ):
        with command("up", *arguments, cwd=tmp_path) as running:
            assert running.wait() == 2
            assert said in " ".join(running.err)


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback address")
def test_up_listens_on_an_ipv6_address(tmp_path: Path) -> None:
    with command("up", "--ephemeral", "--port", "0", "--host", "::1", cwd=tmp_path) as running:
        bootstrap = running.wait_for("bootstrap.servers").split()[-1]
        assert metadata(bootstrap.replace("[", "").replace("]", "")).brokers
        assert running.stop() == 0


def test_json_logs_are_one_object_a_line(tmp_path: Path) -> None:
    config = properties(tmp_path / "p", one_node(tmp_path / "data", no_such_key="x"))
    with command("server", "--config", config, "--log-format", "json") as running:
        bootstrap = bootstrap_of(running)
        with WireClient(bootstrap) as client:
            client.socket.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert client.is_closed_by_peer()
        assert running.stop() == 0
    lines = [json.loads(line) for line in running.err]
    events = {line["event"] for line in lines}
    assert events >= {"configuration", "formatted", "stopping"}
    assert "connection closed: HTTP was sent to a listener that does not speak it" in events
    assert all({"time_ms", "level", "node"} <= set(line) for line in lines)
    assert {line["node"] for line in lines} == {1}


def test_readable_logs_are_one_line_an_event(tmp_path: Path) -> None:
    config = properties(tmp_path / "p", one_node(tmp_path / "data"))
    with command("server", "--config", config) as running:
        bootstrap_of(running)
        assert running.stop() == 0
    assert all(
        re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info |warn |error) \[\d+\] ", line)
        for line in running.err
    )


def test_a_directory_that_cannot_be_written_stops_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = properties(tmp_path / "p", one_node(tmp_path / "file" / "data"))
    with command("server", "--config", config) as running:
        assert running.wait() == 2
        assert "Traceback" not in " ".join(running.err)
    assert stat.S_ISREG((tmp_path / "file").stat().st_mode)

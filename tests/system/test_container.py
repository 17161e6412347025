"""The container files in examples: their command lines, health checks and settings work, without an engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from strandline.cli.parser import build_parser
from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing.clusters import free_ports
from tests.system.containers import (
    FOLDER,
    ROOT,
    VOLUME,
    Container,
    Machine,
    exec_form,
    instructions,
    services,
)

NODES = ("node1", "node2", "node3")


@contextmanager
def started(machine: Machine, name: str, directory: Path) -> Iterator[Container]:
    """A service of the compose file."""
    service = services()[name]
    directory.mkdir()
    environment = {key: machine.here(value, name, directory) for key, value in service["environment"].items()}
    command = [machine.here(each, name, directory) for each in exec_form(instructions()["ENTRYPOINT"][0])]
    health = [machine.here(each, name, directory) for each in service["healthcheck"]["test"][1:]]
    container = Container(command, health, environment, directory)
    try:
        yield container
    finally:
        container.end()


def write_and_read(bootstrap: str, topic: str, count: int) -> None:
    values = {b"%d" % number for number in range(count)}
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in sorted(values):
            producer.send(topic, value)
        producer.flush()
    with Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=f"g-{topic}"
    ) as consumer:
        consumer.subscribe([topic])
        found: set[bytes] = set()
        while not found >= values:
            batch = consumer.poll(60.0)
            assert batch, f"{len(found)} of {count} records came"
            found.update(record.value or b"" for record in batch)


def test_the_image_s_own_command_serves_other_hosts_and_stops_by_its_signal(tmp_path: Path) -> None:
    found = instructions()
    machine = Machine(hosts={"image": "127.0.0.1"})
    (port,) = free_ports(1)

    def here(texts: list[str]) -> list[str]:
        # `up` listens on all addresses here as it does in a container.
        return [each if each == "0.0.0.0" else machine.here(each, "image", tmp_path) for each in texts]

    command = [
        *here(exec_form(found["ENTRYPOINT"][0])),
        *here(exec_form(found["CMD"][0])),
        "--port",
        str(port),
    ]
    container = Container(command, here(exec_form(found["HEALTHCHECK"][0])), {}, tmp_path)
    with ExitStack() as stack:
        stack.callback(container.end)
        container.until_healthy()
        # Another address than the advertised one: that of the container, as another host sees it.
        with Admin(bootstrap_servers=f"127.0.0.9:{port}") as admin:
            (node,) = admin.describe_cluster().nodes
            assert (node.host, node.port) == ("localhost", port)
        write_and_read(f"127.0.0.9:{port}", "orders", 100)
        assert found["STOPSIGNAL"] == ["SIGTERM"]
        assert container.stop() == 0
        assert not container.is_healthy


def test_three_services_are_a_cluster_that_other_hosts_reach_and_that_survives_a_restart(
    tmp_path: Path,
) -> None:
    hosts = {name: f"127.0.0.{number}" for number, name in enumerate(NODES, 11)}
    machine = Machine(hosts=hosts)
    with ExitStack() as stack:
        nodes = {name: stack.enter_context(started(machine, name, tmp_path / name)) for name in NODES}
        for node in nodes.values():
            node.until_healthy()
        with Admin(bootstrap_servers=machine.address("node2", "9092")) as admin:
            assert {each.host for each in admin.describe_cluster().nodes} == set(hosts.values())
            admin.create_topic("orders", partitions=3)
            assert {
                len(each.replicas) for each in admin.describe_topics(["orders"])["orders"].partitions
            } == {3}
        write_and_read(machine.address("node3", "9092"), "orders", 300)
        assert nodes["node1"].stop() == 0
        write_and_read(machine.address("node2", "19092"), "again", 100)
        nodes["node1"].start()
        nodes["node1"].until_healthy()
        write_and_read(machine.address("node1", "9092"), "once-more", 100)
        for node in nodes.values():
            assert node.stop() == 0
            assert "is not a setting" not in node.output
            assert "Traceback" not in node.output


def test_one_service_is_a_broker_with_its_internal_topics_on_itself(tmp_path: Path) -> None:
    machine = Machine(hosts={"broker": "127.0.0.31"})
    with started(machine, "broker", tmp_path / "broker") as broker:
        broker.until_healthy()
        write_and_read(machine.address("broker", "9092"), "orders", 100)
        write_and_read(machine.address("broker", "19092"), "inside", 100)
        assert broker.stop() == 0


@pytest.mark.parametrize("name", [*NODES, "broker"])
def test_a_service_agrees_with_the_image(name: str) -> None:
    service, image = services()[name], instructions()
    assert (FOLDER / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).is_file()
    assert service["healthcheck"]["test"][1:] == exec_form(image["HEALTHCHECK"][0])
    assert service["stop_signal"] == image["STOPSIGNAL"][0]
    assert int(image["USER"][0]) > 0, "not root"
    (volume,) = service["volumes"]
    assert volume == f"{name}:{VOLUME}"
    assert image["VOLUME"] == [VOLUME]
    published = {each.rpartition(":")[0] for each in service["ports"]}
    assert all(each.startswith("127.0.0.1:") for each in published), (
        "only this machine reaches an unsecured port"
    )
    advertised = dict(re.findall(r"(\w+)://([^,]+)", service["environment"]["KAFKA_ADVERTISED_LISTENERS"]))
    assert advertised["INTERNAL"] == f"{name}:19092"
    assert advertised["EXTERNAL"].replace("localhost", "127.0.0.1") in published


def test_the_command_of_the_image_is_one_that_the_command_line_knows() -> None:
    typed = exec_form(instructions()["CMD"][0])
    options = build_parser(typed).parse_args(typed)
    assert (options.host, options.advertise) == ("0.0.0.0", "localhost")


def test_files_that_the_image_copies_are_not_ignored() -> None:
    text = (FOLDER / "Containerfile").read_text()
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)
        for source in line.split()[:-1]
    }
    assert all((ROOT / each).exists() for each in copied)
    kept = set((FOLDER / "Containerfile.dockerignore").read_text().replace("!", "").split())
    assert copied <= kept

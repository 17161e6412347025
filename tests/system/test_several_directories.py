"""A node with several log directories, of which one cannot be read when it starts, or is not mounted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from strandline.client.errors import KafkaError
from strandline.client.sync import Admin, Consumer, Producer, TopicPartition
from tests.system.commands import bootstrap_of, command, one_node, properties

TOPICS = ("a", "b", "c", "d")


@pytest.fixture
def config(tmp_path: Path) -> str:
    directories = ",".join(str(tmp_path / name) for name in ("one", "two"))
    return properties(tmp_path / "p", one_node(tmp_path / "one") | {"log.dirs": directories})


def write_one_to_each_topic(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for topic in TOPICS:
            producer.send_and_wait(topic, b"kept")


def read_first(bootstrap: str, topic: str) -> bytes | None:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        return next(iter(consumer.poll(60.0))).value


def stopped_with_something_in_each(config: str, tmp_path: Path) -> list[str]:
    """Topics whose only replica is in the second directory."""
    with command("server", "--config", config) as running:
        write_one_to_each_topic(bootstrap_of(running))
        assert running.stop() == 0
    there = [topic for topic in TOPICS if (tmp_path / "two" / f"{topic}-0").exists()]
    assert 0 < len(there) < len(TOPICS)
    return there


def test_a_directory_that_cannot_be_read_is_offline_and_the_rest_is_served(
    config: str, tmp_path: Path
) -> None:
    there = stopped_with_something_in_each(config, tmp_path)
    (tmp_path / "two").rename(tmp_path / "away")
    (tmp_path / "two").symlink_to(tmp_path / "two")  # a process that opens it gets ELOOP
    with command("server", "--config", config) as running:
        bootstrap = bootstrap_of(running)
        assert "log directory offline" in running.wait_for(f"directory={tmp_path / 'two'}", in_err=True)
        for topic in TOPICS:
            if topic not in there:
                assert read_first(bootstrap, topic) == b"kept"
        with (
            Producer(
                bootstrap_servers=bootstrap, delivery_timeout_ms=2000, request_timeout_ms=1000
            ) as producer,
            pytest.raises(KafkaError),
        ):
            producer.send_and_wait(there[0], b"nowhere to put it")
        with Admin(bootstrap_servers=bootstrap) as admin:
            described = admin.describe_log_dirs()
        errors = {d.path: d.error for node in described.values() for d in node}
        assert errors[str(tmp_path / "one")] is None
        assert errors[str(tmp_path / "two")] is not None
        assert running.stop() == 0
    (tmp_path / "two").unlink()
    (tmp_path / "away").rename(tmp_path / "two")
    with command("server", "--config", config) as running:
        bootstrap = bootstrap_of(running)
        assert [read_first(bootstrap, topic) for topic in TOPICS] == [b"kept"] * len(TOPICS)


def test_a_directory_that_has_become_empty_is_not_formatted_again(config: str, tmp_path: Path) -> None:
    stopped_with_something_in_each(config, tmp_path)
    shutil.move(tmp_path / "two", tmp_path / "away")
    (tmp_path / "two").mkdir()
    with command("server", "--config", config) as running:
        assert running.wait() == 2
        complaint = " ".join(running.err)
    assert "not mounted" in complaint
    assert "--ignore-formatted" in complaint
    assert list((tmp_path / "two").iterdir()) == []


def test_a_node_does_not_start_without_its_metadata(config: str, tmp_path: Path) -> None:
    stopped_with_something_in_each(config, tmp_path)
    shutil.rmtree(tmp_path / "one")
    (tmp_path / "one").symlink_to(tmp_path / "one")
    with command("server", "--config", config) as running:
        assert running.wait() == 2
        complaint = " ".join(running.err)
    assert "cannot do without it" in complaint
    assert "Traceback" not in complaint

"""`strandline topics` and `strandline configs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strandline.client.sync import Admin
from tests.system.cli.conftest import Ran

Run = Callable[..., Ran]
Json = Callable[..., Any]


def test_a_topic_is_created_listed_described_changed_cloned_and_deleted(
    run: Run, json_of: Json, bootstrap: str
) -> None:
    created = json_of("topics", "create", "orders", "-p", "3", "-c", "retention.ms=86400000")
    assert created["topics"] == [
        {"name": "orders", "partitions": 3, "replication_factor": 1, "created": True}
    ]
    assert "orders" in [each["name"] for each in json_of("topics", "list")["topics"]]
    (described,) = json_of("topics", "describe", "orders")["topics"]
    assert described["configs"] == {"retention.ms": "86400000"}
    assert [each["leader"] for each in described["partitions"]] == [1, 1, 1]
    json_of(
        "topics",
        "alter",
        "orders",
        "-p",
        "5",
        "-c",
        "max.message.bytes=2000000",
        "--delete-config",
        "retention.ms",
    )
    (described,) = json_of("topics", "describe", "orders")["topics"]
    assert (len(described["partitions"]), described["configs"]) == (5, {"max.message.bytes": "2000000"})
    cloned = json_of("topics", "clone", "orders", "orders-copy")
    assert (cloned["partitions"], cloned["configs"]) == (5, {"max.message.bytes": "2000000"})
    assert json_of("topics", "delete", "orders*", "-y")["topics"] == ["orders", "orders-copy"]
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert [name for name in admin.list_topics() if name.startswith("orders")] == []


def test_a_topic_that_exists_is_an_error_or_accepted(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "twice")
    ran = run("topics", "create", "twice")
    assert (ran.code, "TOPIC_ALREADY_EXISTS" in ran.err) == (1, True)
    again = json_of("topics", "create", "twice", "--if-not-exists")
    assert again["topics"][0]["created"] is False


def test_a_dry_run_creates_and_deletes_nothing(run: Run, json_of: Json) -> None:
    assert json_of("topics", "create", "dry", "--dry-run")["dry_run"] is True
    assert run("topics", "describe", "dry").code == 4
    json_of("topics", "create", "kept")
    json_of("topics", "delete", "kept", "--dry-run")
    assert run("topics", "describe", "kept").code == 0


def test_nothing_is_deleted_without_a_terminal_to_confirm(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "asked")
    ran = run("topics", "delete", "asked")
    assert (ran.code, "add --yes" in ran.err) == (1, True)
    assert run("topics", "describe", "asked").code == 0


def test_internal_topics_are_refused_without_a_flag_of_their_own(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "read-once")
    json_of("groups", "reset-offsets", "someone", "--topic", "read-once", "--to-latest", "-y")
    ran = run("topics", "delete", "__consumer_offsets", "--yes")
    assert (ran.code, "groups lose their offsets" in ran.err) == (2, True)
    assert "__consumer_offsets" in [
        each["name"] for each in json_of("topics", "list", "--internal")["topics"]
    ]
    assert run("topics", "delete", "__*", "--yes").code == 4, "a pattern never means internal topics"


def test_the_error_about_an_unknown_topic_has_the_nearest_name(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "payments")
    for command in (
        ["topics", "describe", "paymants"],
        ["topics", "delete", "paymants", "--yes"],
        ["topics", "delete-records", "paymants", "--all", "--yes"],
        ["consume", "paymants", "--exit"],
        ["configs", "get", "--topic", "paymants"],
        ["groups", "reset-offsets", "g", "--topic", "paymants", "--to-latest"],
    ):
        ran = run(*command)
        assert (ran.code, ran.err) == (4, "strandline: there is no topic paymants; did you mean payments?\n")


def test_records_are_deleted_before_an_offset(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "old")
    json_of("produce", "old", stdin=b"1\n2\n3\n4\n")
    deleted = json_of("topics", "delete-records", "old", "--before-offset", "3", "-y")
    assert deleted["partitions"] == [{"topic": "old", "partition": 0, "log_start_offset": 3, "deleted": 3}]
    assert run("consume", "old", "--exit").out == "4\n"
    assert run("topics", "delete-records", "old", "--before-offset", "9", "-y").code == 2


def test_settings_are_shown_changed_and_compared_with_defaults(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "tuned")
    json_of("configs", "set", "retention.ms=5000", "--append", "cleanup.policy=compact", "--topic", "tuned")
    changed = {each["key"]: each for each in json_of("configs", "diff", "--topic", "tuned")["configs"]}
    assert changed["retention.ms"]["value"] == "5000"
    assert changed["cleanup.policy"]["value"] == "delete,compact"
    (one,) = json_of("configs", "get", "retention.ms", "--topic", "tuned")["configs"]
    assert (one["value"], one["source"]) == ("5000", "topic")
    json_of("configs", "set", "--delete", "retention.ms", "--topic", "tuned")
    assert "retention.ms" not in run("configs", "diff", "--topic", "tuned").out
    assert run("configs", "get", "no.such.key", "--topic", "tuned").code == 4
    assert run("configs", "set", "retention.ms=never", "--topic", "tuned").code == 1
    assert run("configs", "get", "--broker", "9").code == 4
    assert json_of("configs", "get", "--broker", "1")["configs"]
    assert {"type": "topic", "name": "tuned"} in json_of("configs", "list")["resources"]


def test_partitions_that_are_whole_are_left_out_by_the_filters(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "whole", "-p", "2")
    for only in ("--under-replicated", "--offline", "--under-min-isr", "--not-preferred"):
        assert json_of("topics", "describe", "whole", only)["topics"] == []
    assert "PARTITION  LEADER" in run("topics", "describe", "whole").out

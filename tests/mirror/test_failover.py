"""The source is killed under load: groups go on at the target, and the proof says exactly what had not arrived."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from strandline.testing.clusters import wait_until
from strandline.testing.process import BrokerProcess, running_broker
from tests.json_shapes import checked_lines
from tests.mirror.groups import committed, consume
from tests.mirror.scene import Scene, scene, values_of
from tests.properties.effort import in_soak


def verified_partitions(text: str) -> list[Any]:
    """Returns the partitions that `mirror verify --json` printed."""
    found: list[Any] = checked_lines(text, ("mirror", "verify", "--config", "file"))[0]["partitions"]
    return found


def test_group_of_a_source_killed_under_load_goes_on_with_the_next_record(
    west: BrokerProcess, tmp_path: Path
) -> None:
    with (
        running_broker(group_min_session_timeout_ms=1000) as north,
        scene(tmp_path, north=north.bootstrap, west=west.bootstrap) as two,
    ):
        two.create_topic("north", "orders", 1)
        config = two.config(
            {
                "north->west.enabled": "true",
                "north->west.topics": "orders",
                "sync.group.offsets.enabled": "true",
                "strandline.transaction.bytes": "2000",
            }
        )
        mirror = two.mirror(config)
        mirror.start()
        two.produce("north", "orders", [f"v{n}" for n in range(200)])
        two.read("west", "north.orders", 200)
        consume(two, "north", "orders", "billing", 150)
        wait_until(lambda: bool(committed(two, "west", "billing")), 30)
        _write_and_kill(two, north, mirror)
        arrived = two.read_all("west", "north.orders")

        dry = two.command("failover", "--config", str(config), "--dry-run")
        assert dry.returncode == 0, dry.stderr
        assert "would be committed" in dry.stdout
        done = two.command("failover", "--config", str(config), "--json")
        assert done.returncode == 0, done.stderr
        (proof,) = checked_lines(done.stdout, ("mirror", "failover", "--config", str(config)))
        assert proof["offsets_are_from"] == "checkpoints"
        (moved,) = [each for each in proof["groups"] if each["group"] == "billing"]
        assert (moved["source_offset"], moved["note"]) == (150, "")

        # The consumer goes on with the next record: nothing is skipped, nothing is read again.
        after = consume(two, "west", "north.orders", "billing", len(arrived) - 150)
        assert after == values_of(arrived)[150:]

        north.start()
        verified = two.command("verify", "--config", str(config), "--contents", "--json")
        assert verified.returncode == 1, verified.stderr
        (found,) = [
            each
            for each in checked_lines(verified.stdout, ("mirror", "verify", "--config", str(config)))[0][
                "partitions"
            ]
            if each["source"] == "orders-0"
        ]
        original = two.read_all("north", "orders")
        missing = values_of(original)[len(arrived) :]
        assert found["missing_count"] == len(missing) > 0
        assert found["different_count"] == 0
        assert found["compared"] == len(arrived)
        listed = {each["offset"] for each in found["missing"]}
        assert listed == {m.offset() for m in original[len(arrived) :]}
        # The mirror stays paused: it must not go on by itself, nor by `resume`.
        refused = two.command("resume", "--config", str(config))
        assert refused.returncode == 1
        assert "north->west has failed over: nothing was done" in refused.stderr
        mirror.start()
        status = two.command("status", "--config", str(config))
        assert "paused (failover)" in status.stdout
        assert len(two.read_all("west", "north.orders")) == len(arrived)


def _write_and_kill(two: Scene, north: BrokerProcess, mirror: object) -> None:
    """Writes while the mirror copies; ends the mirror first, so that some records certainly do not arrive."""
    writer = threading.Thread(
        target=lambda: two.produce("north", "orders", [f"v{n}" for n in range(200, 1_200)])
    )
    writer.start()
    wait_until(lambda: len(two.read_all("west", "north.orders")) > 200, 30)
    mirror.kill()  # type: ignore[attr-defined]
    writer.join()
    two.produce("north", "orders", [f"w{n}" for n in range(50)])
    north.kill()


@in_soak
def test_failback_copies_only_what_is_missing_and_tells_both_ends(
    east: BrokerProcess, west: BrokerProcess, tmp_path: Path
) -> None:
    with scene(tmp_path, east=east.bootstrap, west=west.bootstrap) as two:
        two.create_topic("east", "ledger", 1)
        config = two.config(
            {
                "east->west.enabled": "true",
                "east->west.topics": "ledger",
                "strandline.transaction.bytes": "500",
            }
        )
        mirror = two.mirror(config)
        mirror.start()
        two.produce("east", "ledger", [f"v{n}" for n in range(30)])
        two.read("west", "east.ledger", 30)
        assert two.command("failback", "--config", str(config)).returncode == 2  # there was no failover
        assert two.command("failover", "--config", str(config)).returncode == 0
        two.produce("west", "east.ledger", [f"w{n}" for n in range(5)])  # producers have moved
        consume(two, "west", "east.ledger", "reader", 32)
        dry = two.command("failback", "--config", str(config), "--dry-run")
        assert dry.returncode == 0, dry.stderr
        assert "ledger-0: 0 records" in dry.stdout
        assert "east.ledger-0: 5 records" in dry.stdout
        running = two.command("failback", "--config", str(config))
        assert "stop the processes of east->west first" in running.stderr
        mirror.stop()

        two.produce("east", "ledger", ["alone"])  # and one has not
        wait_until(lambda: _is_ended(two, config), 30)
        refused = two.command("failback", "--config", str(config))
        assert refused.returncode == 1
        assert "both ends took records" in refused.stderr
        assert values_of(two.read_all("east", "ledger"))[30:] == ["alone"]

        done = two.command("failback", "--config", str(config), "--accept-divergence")
        assert done.returncode == 0, done.stderr
        assert "5 records copied back, 1 copied forward, 1 groups moved back" in done.stdout
        at_east = two.read("east", "ledger", 36)
        assert values_of(at_east)[30:] == ["alone", *(f"w{n}" for n in range(5))]
        assert values_of(two.read("west", "east.ledger", 36))[30:] == [*(f"w{n}" for n in range(5)), "alone"]
        next_offset = committed(two, "east", "reader")["ledger", 0]
        assert next(m.value() for m in at_east if m.offset() == next_offset) == b"w2"

        # The flow goes on, and copies nothing twice.
        mirror.start()
        two.produce("east", "ledger", ["after"])
        assert values_of(two.read("west", "east.ledger", 37))[36:] == ["after"]
        # Each copy is the same record as at the source, those that came back included.
        verified = two.command("verify", "--config", str(config), "--contents", "--json")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert (
            sum(
                each["compared"]
                for each in checked_lines(verified.stdout, ("mirror", "verify", "--config", str(config)))[0][
                    "partitions"
                ]
            )
            == 37
        )


def _is_ended(two: Scene, config: Path) -> bool:
    return "process" not in two.command("status", "--config", str(config)).stdout.replace("no process", "")

"""Retry topics and dead letters: every record has an outcome, and offsets follow it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client import Admin
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.deadletter import redrive as deadletter_redrive
from strandline.client.deadletter.handler import DeadLetters, Output
from strandline.client.errors import ConfigError
from tests.client.consuming import QUICK, fill, new_group
from tests.client.reading import Seen, create, read_all, run
from tests.record_times import recent_ms

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 60.0


class Crash(BaseException):
    """As if the process ended here: nothing catches it."""


def letters_over(bootstrap: str, topic: str, handler: Any, **settings: Any) -> DeadLetters:
    settings.setdefault("group_id", new_group())
    settings.setdefault("backoff_ms", (50, 150))
    return DeadLetters([topic], handler, {**QUICK, "bootstrap.servers": bootstrap}, **settings)


async def run_until(letters: DeadLetters, holds: Callable[[], bool]) -> None:
    """Runs it until the condition holds and what was handled is committed."""
    working = asyncio.create_task(letters.run())
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        if working.done():
            working.result()
        assert time.monotonic() < deadline, letters.metrics()
        await asyncio.sleep(0.01)
    letters.stop()
    await working


def headers_of(seen: Seen) -> dict[str, bytes | None]:
    return dict(seen.headers)


async def committed(bootstrap: str, group: str, topic: str) -> int:
    where = TopicPartition(topic, 0)
    async with Admin(bootstrap_servers=bootstrap) as admin:
        found = (await admin.list_group_offsets(group, [where])).get(where)
        return 0 if found is None else found.offset


def test_a_record_that_fails_is_tried_again_later_under_its_own_name(bootstrap: str, topic: str) -> None:
    tries: list[tuple[bytes, int, int, float]] = []
    group = new_group()

    async def handle(record: ConsumerRecord) -> None:
        tries.append((record.value, record.partition, record.offset, time.monotonic()))
        assert record.topic == topic
        if record.value == b"1" and len([each for each in tries if each[0] == b"1"]) < 3:
            raise RuntimeError("not now")

    async def main() -> dict[str, float]:
        await create(bootstrap, topic)
        fill(bootstrap, topic, range(3))
        async with letters_over(bootstrap, topic, handle, group_id=group) as letters:
            await run_until(letters, lambda: len(tries) == 5)
            assert await committed(bootstrap, group, topic) == 3
            return letters.metrics()

    metrics = run(main())
    assert [each[0] for each in tries] == [b"0", b"1", b"2", b"1", b"1"], "the others did not wait"
    assert {each[1:3] for each in tries if each[0] == b"1"} == {(0, 1)}, "it keeps its place"
    times = [each[3] for each in tries if each[0] == b"1"]
    assert times[1] - times[0] >= 0.05
    assert times[2] - times[1] >= 0.15
    assert (metrics["handled-total"], metrics["retried-total"], metrics["dead-total"]) == (3, 2, 0)


def test_a_handler_that_never_succeeds_makes_a_dead_letter_that_tells_its_story(
    bootstrap: str, topic: str
) -> None:
    sent_ms = recent_ms()
    tries: list[int] = []

    def handle(record: ConsumerRecord) -> None:  # a plain function, in a thread
        tries.append(int(dict(record.headers).get("dlq.attempt") or 0))
        raise ValueError("no such customer ✗" + "." * 5000)

    async def main() -> None:
        await create(bootstrap, topic)
        fill(bootstrap, topic, [7], timestamp=lambda _: sent_ms)
        async with letters_over(bootstrap, topic, handle, group_id="billing-" + topic) as letters:
            await run_until(letters, lambda: letters.metrics().get("dead-total", 0) == 1)

    run(main())
    assert tries == [0, 1, 2]
    [letter] = read_all(bootstrap, f"{topic}.dlq", count=1)
    assert (letter.key, letter.value) == (b"k7", b"7")
    headers = headers_of(letter)
    assert (headers.pop("dlq.error") or b"").decode().startswith("no such customer ✗...")
    assert headers == {
        "dlq.error_class": b"builtins.ValueError",
        "dlq.group": b"billing-" + topic.encode(),
        "dlq.attempt": b"3",
        "dlq.original_topic": topic.encode(),
        "dlq.original_partition": b"0",
        "dlq.original_offset": b"0",
        "dlq.original_timestamp": b"%d" % sent_ms,
    }


def test_a_record_that_a_deserializer_refuses_is_a_dead_letter_at_once_with_its_bytes(
    bootstrap: str, topic: str
) -> None:
    handled: list[Any] = []

    async def handle(record: ConsumerRecord) -> None:
        handled.append(record.value)
        if record.value == 5:
            raise KeyError("never good")

    async def main() -> int:
        await create(bootstrap, topic)
        async with letters_over(
            bootstrap, topic, handle, value_deserializer="json", fatal=[KeyError], group_id="g-" + topic
        ) as letters:
            for value in (b"1", b"{broken\xff", b"5", b"2"):
                await letters.producer.send_and_wait(topic, value, headers={"mine": b"x"})
            await run_until(letters, lambda: sum(letters.metrics().values()) == 4)
            assert letters.metrics()["retried-total"] == 0
        return await committed(bootstrap, "g-" + topic, topic)

    assert run(main()) == 4
    assert handled == [1, 5, 2]
    letters = read_all(bootstrap, f"{topic}.dlq", count=2)
    assert [letter.value for letter in letters] == [b"{broken\xff", b"5"]
    assert all(headers_of(letter)["mine"] == b"x" for letter in letters)
    assert all(headers_of(letter)["dlq.attempt"] == b"1" for letter in letters)


def test_a_crash_between_outcome_and_commit_repeats_records_and_loses_none(
    bootstrap: str, topic: str
) -> None:
    group = new_group()

    async def handle(record: ConsumerRecord) -> None:
        raise ValueError("bad")

    async def crash() -> None:
        raise Crash

    async def main() -> None:
        await create(bootstrap, topic)
        fill(bootstrap, topic, range(3))
        async with letters_over(bootstrap, topic, handle, group_id=group, backoff_ms=()) as letters:
            letters._commit = crash  # type: ignore[method-assign]
            with pytest.raises(Crash):
                await letters.run()
        assert len(await asyncio.to_thread(read_all, bootstrap, f"{topic}.dlq", count=3)) == 3, "durable"
        assert await committed(bootstrap, group, topic) == 0, "and not committed"
        async with letters_over(bootstrap, topic, handle, group_id=group, backoff_ms=()) as letters:
            await run_until(letters, lambda: letters.metrics().get("dead-total", 0) == 3)
        assert await committed(bootstrap, group, topic) == 3

    run(main())
    assert [each.value for each in read_all(bootstrap, f"{topic}.dlq", count=6)] == [b"0", b"1", b"2"] * 2


def test_with_transactions_a_crash_before_the_commit_leaves_every_outcome_once(
    bootstrap: str, topic: str
) -> None:
    group = new_group()

    async def handle(record: ConsumerRecord) -> list[Output]:
        if record.value == b"1":
            raise ValueError("bad")
        return [Output(topic=f"{topic}.out", value=record.value)]

    async def crash() -> None:
        await letters.producer.flush()
        raise Crash

    async def main() -> None:
        nonlocal letters
        await create(bootstrap, topic)
        await create(bootstrap, f"{topic}.out")
        fill(bootstrap, topic, range(4))
        settings = {"group_id": group, "backoff_ms": (), "transactional_id": f"{topic}-worker"}
        letters = letters_over(bootstrap, topic, handle, **settings)
        await letters.start()
        letters.producer.commit_transaction = crash  # type: ignore[method-assign]
        with pytest.raises(Crash):
            await letters.run()
        await letters._consumer.close()
        await letters.producer.close(0)  # without an end of the transaction, as a crash does
        async with letters_over(bootstrap, topic, handle, **settings) as letters:
            await run_until(letters, lambda: letters.metrics().get("handled-total", 0) == 3)
        assert await committed(bootstrap, group, topic) == 4

    letters: DeadLetters
    run(main())
    assert [each.value for each in read_all(bootstrap, f"{topic}.dlq", count=1)] == [b"1"]
    assert [each.value for each in read_all(bootstrap, f"{topic}.out", count=3)] == [b"0", b"2", b"3"]


def redrive(bootstrap: str, topic: str, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "strandline.cli.main", "dlq", "redrive", topic, "--json"]
    done = subprocess.run(
        [*command, "--bootstrap-server", bootstrap, *options],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def refuse(record: ConsumerRecord) -> None:
    raise ValueError("bad")


def test_letters_that_are_redriven_are_put_back_once_and_can_succeed(bootstrap: str, topic: str) -> None:
    is_repaired = False
    handled: list[bytes] = []

    async def handle(record: ConsumerRecord) -> None:
        if not is_repaired:
            raise ValueError("bad")
        handled.append(record.value)
        assert dict(record.headers) == {"dlq.redriven": b"1"}

    async def main() -> None:
        nonlocal is_repaired
        await create(bootstrap, topic)
        fill(bootstrap, topic, range(5))
        async with letters_over(bootstrap, topic, handle, group_id=f"g-{topic}", backoff_ms=()) as letters:
            await run_until(letters, lambda: letters.metrics().get("dead-total", 0) == 5)
        planned = redrive(bootstrap, topic, "--dry-run")
        assert planned["count"] == 5
        assert planned["letters"][0]["error"] == "bad"
        assert planned["letters"][0]["to"] == topic
        assert [each["original_offset"] for each in planned["letters"]] == [0, 1, 2, 3, 4]
        assert redrive(bootstrap, topic, "--max", "1")["count"] == 1
        done: list[int] = []
        settings = {"bootstrap.servers": bootstrap}
        await deadletter_redrive.redrive(topic, settings, count_max=1, on_progress=done.append)
        assert done[-1] == 1
        assert redrive(bootstrap, topic)["count"] == 3
        assert redrive(bootstrap, topic)["count"] == 0
        is_repaired = True
        async with letters_over(bootstrap, topic, handle, group_id=f"g-{topic}", backoff_ms=()) as letters:
            await run_until(letters, lambda: len(handled) == 5)

    run(main(), seconds_max=180)
    assert handled == [b"0", b"1", b"2", b"3", b"4"]


def test_letters_are_put_into_another_topic_in_transactions_and_once_more_from_the_beginning(
    bootstrap: str, topic: str
) -> None:
    async def die() -> None:
        await create(bootstrap, topic)
        await create(bootstrap, f"{topic}.elsewhere")
        fill(bootstrap, topic, range(3))
        async with letters_over(bootstrap, topic, refuse, backoff_ms=()) as letters:
            await run_until(letters, lambda: letters.metrics().get("dead-total", 0) == 3)

    run(die(), seconds_max=180)
    elsewhere = ("--to", f"{topic}.elsewhere", "--transactional-id", f"redrive-{topic}")
    told = redrive(bootstrap, topic, *elsewhere)
    assert {(each["to"], each["original_topic"]) for each in told["letters"]} == {
        (f"{topic}.elsewhere", topic)
    }
    assert redrive(bootstrap, topic, *elsewhere)["count"] == 0, "the offsets went with the transaction"
    assert redrive(bootstrap, topic, *elsewhere, "--from-beginning")["count"] == 3
    found = read_all(bootstrap, f"{topic}.elsewhere", count=6)
    assert [each.value for each in found] == [b"0", b"1", b"2"] * 2


def test_settings_that_would_break_the_promise_are_refused() -> None:
    async def handle(record: ConsumerRecord) -> None: ...

    with pytest.raises(ConfigError, match=r"group\.id"):
        DeadLetters(["orders"], handle, bootstrap_servers="localhost:1")
    with pytest.raises(ConfigError, match=r"enable\.auto\.commit"):
        DeadLetters(
            ["orders"], handle, bootstrap_servers="localhost:1", group_id="g", enable_auto_commit=True
        )


def test_the_tour_does_what_the_guide_says() -> None:
    tour = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "client_tour.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    guide = (ROOT / "docs" / "guides" / "client.md").read_text()
    told = guide.split("$ python examples/client_tour.py\n")[1].split("```")[0].splitlines()
    assert tour.stdout.splitlines() == told

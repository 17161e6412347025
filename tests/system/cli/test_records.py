"""`strandline produce` and `strandline consume`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from strandline.cli.output.text import moment
from tests.record_times import recent_ms
from tests.system.cli.conftest import Ran

Run = Callable[..., Ran]
Json = Callable[..., Any]
BASE_MS = recent_ms()
ODD = [
    (b"key", b"value", [("a", b"1"), ("a", b"2"), ("null", None)], BASE_MS + 123),
    (b"\xff\x00\xfe", b"\x00\x01\xff", [("bin", b"\xff")], BASE_MS + 124),
    (None, b"", [], BASE_MS + 125),
    (b"", None, [], BASE_MS + 126),
    ("ключ".encode(), b'"quoted"\n\tline', [], BASE_MS + 127),
]


def test_a_pipe_copies_records_with_keys_headers_and_timestamps(
    run: Run, json_of: Json, bootstrap: str
) -> None:
    for name in ("source", "copy"):
        json_of("topics", "create", name)
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value, headers, timestamp in ODD:
        producer.produce("source", key=key, value=value, headers=headers, timestamp=timestamp)
    producer.flush(30)
    rows = run("consume", "source", "--exit", "--json")
    assert rows.code == 0
    assert json_of("produce", "copy", "--from-json", stdin=rows.out.encode())["sent"] == len(ODD)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["copy"])
    copied = list(consumer.consume(len(ODD), 30))
    consumer.close()
    assert [(each.key(), each.value(), each.headers() or [], each.timestamp()[1]) for each in copied] == ODD


def test_lines_have_keys_headers_and_tombstones(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "lines")
    json_of("produce", "lines", "-K", ":", "--null", "-", "-H", "from=test", stdin=b"a:1\nb:-\nc:x:y\n")
    rows = [json.loads(line) for line in run("consume", "lines", "-e", "--json").out.splitlines()]
    assert [(row["key"], row["value"]) for row in rows] == [("a", "1"), ("b", None), ("c", "x:y")]
    assert rows[0]["headers"] == [{"key": "from", "value": "test"}]
    assert run("produce", "lines", "--tombstone", "--key", "a").code == 0
    assert run("consume", "lines", "--tail", "1", "-n", "1", "-f", "%k %S\\n").out == "a -1\n"


def test_the_error_about_a_broken_file_names_the_line_and_counts_acknowledged_records(
    run: Run, json_of: Json, tmp_path: Path
) -> None:
    json_of("topics", "create", "broken")
    file = tmp_path / "rows.json"
    file.write_text('{"value": "1"}\n{"value": "2"}\nnot a row\n{"value": "4"}\n')
    ran = run("produce", "broken", str(file), "--from-json")
    assert ran.code == 1
    assert f"{file}, line 3: not JSON" in ran.err
    assert "2 records acknowledged before it, nothing after it was sent" in ran.err
    assert run("consume", "broken", "-e").out == "1\n2\n"
    document = json_of("produce", "broken", str(file), "--from-json", "--keep-going", code=1)
    assert (document["sent"], [each["line"] for each in document["failures"]]) == (3, [3])


def test_the_error_about_too_large_values_names_their_line(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "large", "-c", "max.message.bytes=4000000")
    value = b"x" * 2_000_000
    ran = run("produce", "large", stdin=b"small\n" + value + b"\nlast\n")
    assert (ran.code, "line 2: MESSAGE_TOO_LARGE" in ran.err) == (1, True)
    assert "2 records acknowledged, 1 record not" in ran.err
    assert run("produce", "large", "-X", "max.request.size=4000000", stdin=value).code == 0
    assert run("consume", "large", "--tail", "1", "-n", "1").out == value.decode() + "\n"


def test_a_range_is_read_by_offset_and_by_time(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "ranged")
    rows = b"".join(b'{"value": "%d", "timestamp": %d}\n' % (i, BASE_MS + i * 1000) for i in range(10))
    json_of("produce", "ranged", "--from-json", stdin=rows)
    assert run("consume", "ranged", "--from", "3", "--to-offset", "5").out == "3\n4\n"
    assert run("consume", "ranged", "--from", str(BASE_MS + 8000), "--exit").out == "8\n9\n"
    assert run("consume", "ranged", "--until", moment(BASE_MS + 2000)).out == "0\n1\n"
    assert run("consume", "ranged", "--tail", "2", "--exit").out == "8\n9\n"
    assert run("consume", "ranged", "--exit", "--max", "1").out == "0\n"
    assert run("consume", "ranged", "--from", "50", "--exit").out == ""


def test_grep_looks_at_keys_values_and_headers(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "searched")
    rows = b'{"key":"apple","value":"red"}\n{"key":"k","value":"an Apple"}\n'
    rows += b'{"value":"x","headers":{"h":"apple"}}\n{"value":"y"}\n'
    json_of("produce", "searched", "--from-json", stdin=rows)

    def found(*options: str) -> list[str]:
        return run("consume", "searched", "-e", *options).out.splitlines()

    assert found("--grep", "apple") == ["red", "x"]
    assert found("--grep", "apple", "-i") == ["red", "an Apple", "x"]
    assert found("--grep-key", "^app") == ["red"]
    assert found("--grep-header", "h=apple") == ["x"]
    assert found("--grep", "appl[e]", "--invert") == ["an Apple", "y"]
    assert run("consume", "searched", "-e", "--grep", "(").code == 2


def test_a_group_commits_printed_records_and_goes_on_after_them(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "shared")
    json_of("produce", "shared", stdin=b"1\n2\n3\n")
    assert run("consume", "shared", "-g", "readers", "--from-beginning", "-n", "2").out == "1\n2\n"
    assert run("consume", "shared", "-g", "readers", "--exit").out == "3\n"
    (group,) = json_of("groups", "describe", "readers")["groups"]
    assert (group["lag"], group["partitions"][0]["committed"]) == (0, 3)


def test_records_of_aborted_transactions_are_left_out_on_request(
    run: Run, json_of: Json, bootstrap: str
) -> None:
    json_of("topics", "create", "transactional")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions(30)
    for value, ends in (
        (b"aborted", producer.abort_transaction),
        (b"committed", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce("transactional", value)
        producer.flush(30)
        ends(30)
    assert run("consume", "transactional", "-e", "--committed").out == "committed\n"
    assert run("consume", "transactional", "-e").out == "aborted\ncommitted\n"


@pytest.mark.parametrize("options", [["--json"], []])
def test_a_pipe_that_closes_early_ends_a_reader_without_a_word(
    run: Run, json_of: Json, options: list[str]
) -> None:
    name = f"piped{len(options)}"
    json_of("topics", "create", name)
    json_of("produce", name, stdin=b"x" * 100 + b"\n" + b"y\n" * 50_000)
    ended = subprocess.run(
        f"{sys.executable} -m strandline consume {name} --exit {' '.join(options)} | head -n 1",
        shell=True,
        capture_output=True,
        timeout=60,
        check=True,
        env=os.environ,
    )
    assert (ended.stdout.count(b"\n"), ended.stderr) == (1, b"")


def test_options_that_contradict_are_refused(run: Run) -> None:
    for options in (
        ["consume", "t", "--json", "--raw"],
        ["consume", "t", "--group", "g", "--tail", "1"],
        ["consume", "t", "--from", "5", "--tail", "1"],
        ["consume", "t", "--from", "yesterday"],
        ["consume", "t", "--format", "%q"],
        ["produce", "t", "--tombstone"],
        ["produce", "t", "--keep-partitions"],
        ["produce", "t", "no/such/file"],
        ["produce", "t", "-H", "novalue"],
    ):
        assert run(*options, "-b", "127.0.0.1:1", "--timeout", "1").code in (2, 3), options


def test_dead_letters_are_listed_shown_and_put_back(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "failing", "failing.dlq")
    headers = {"dlq.original_topic": "failing", "dlq.original_partition": "0", "dlq.original_offset": "7"}
    letter = {"value": "v", "headers": {**headers, "dlq.error": "no such customer", "dlq.group": "billing"}}
    json_of("produce", "failing.dlq", "--from-json", stdin=json.dumps(letter).encode())
    assert json_of("dlq", "list")["topics"] == [{"topic": "failing", "letters": 1, "waiting": 1}]
    shown = json.loads(run("dlq", "show", "failing", "--json").out)
    assert (shown["group"], shown["error"], shown["original_offset"]) == ("billing", "no such customer", 7)
    assert "no such customer" in run("dlq", "show", "failing").out
    assert json_of("dlq", "redrive", "failing", "--dry-run")["count"] == 1
    assert json_of("dlq", "redrive", "failing")["letters"][0]["to"] == "failing"
    assert run("consume", "failing", "--exit").out == "v\n"
    assert json_of("dlq", "list")["topics"][0]["waiting"] == 0
    run("produce", "failing.dlq", stdin=b"put there by hand\n")
    assert json_of("dlq", "redrive", "failing")["letters"][0]["to"] == "failing"  # and not failing.dlq again
    assert json_of("dlq", "list")["topics"][0]["waiting"] == 0
    for action in ("show", "redrive"):
        assert run("dlq", action, "nowhere").code == 4

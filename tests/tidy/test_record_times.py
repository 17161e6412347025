"""Records for real brokers are not stamped with a literal date: retention deletes them 30 seconds after the start."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.tidy.tree import ROOT, tracked_files

# All tests of these folders talk to real brokers; other tests do if they start one.
FOLDERS = ("bench", "examples", "tests/client", "tests/compat", "tests/oracle", "tests/spark", "tests/system")
STARTS_A_BROKER = re.compile(r"from strandline\.testing import|\bApacheKafka\(")
SUFFIXES = {".go", ".java", ".js", ".py", ".yaml", ".yml"}

# Files that may have literal times, and why retention cannot delete their records.
ALLOWED = {
    "bench/avro_values.py": "the time is a field of the value; the record has the producer's own time",
}

ADVICE = "take tests.record_times.recent_ms(), or create the topic with retention.ms=-1 and list the file in ALLOWED"

NUMBER = re.compile(r"(?<![\w.])(\d[\d_]{8,24})[Ln]?(?!\w)")
YEARS = tuple(int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2001, 2040))
UNITS_PER_SECOND = (1, 10**3, 10**6, 10**9)
# Numbers that are limits or sizes rather than times, though some moment has them.
POWERS = {2**n + off for n in range(64) for off in (-1, 0, 1)} | {10**n for n in range(19)}


def is_time(number: int) -> bool:
    begin_s, end_s = YEARS
    return number not in POWERS and any(begin_s * unit <= number < end_s * unit for unit in UNITS_PER_SECOND)


def literal_times(text: str) -> Iterator[str]:
    """Returns the line and the number of each literal that is a time between 2001 and 2040, in any language."""
    for at, line in enumerate(text.splitlines(), 1):
        for found in NUMBER.finditer(line):
            if is_time(int(found[1].replace("_", ""))):
                yield f"{at}: {found[1]}"


def batches_without_a_time(text: str) -> Iterator[str]:
    """Returns the line of each use of `tests.batches` that takes the literal time of simulated clocks."""
    tree = ast.parse(text)
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "tests.batches"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names & {"NOW_MS"}:
            yield f"{node.lineno}: NOW_MS"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in names & {"batch", "records"}
            and not {keyword.arg for keyword in node.keywords} & {"timestamp", "contents"}
        ):
            yield f"{node.lineno}: {node.func.id}() without timestamp="


def uses_a_real_broker(path: str, text: str) -> bool:
    if path.startswith("tests/tidy/"):
        return False
    return path.startswith(tuple(f"{folder}/" for folder in FOLDERS)) or (
        path.startswith("tests/") and STARTS_A_BROKER.search(text) is not None
    )


def files_with_real_brokers() -> Iterator[tuple[str, str]]:
    """Returns the path and the text of each module."""
    for file in tracked_files():
        path = file.relative_to(ROOT).as_posix()
        if file.suffix in SUFFIXES and path.startswith(("bench/", "examples/", "tests/")):
            text = file.read_text()
            if uses_a_real_broker(path, text):
                yield path, text


def test_no_record_for_a_real_broker_has_a_literal_time() -> None:
    found = []
    for path, text in files_with_real_brokers():
        if path not in ALLOWED:
            found += [f"{path}:{literal}" for literal in literal_times(text)]
        if path.endswith(".py"):
            found += [f"{path}:{use}" for use in batches_without_a_time(text)]
    assert found == [], ADVICE


def test_every_allowed_file_still_has_a_literal_time() -> None:
    needed = {path for path, text in files_with_real_brokers() if any(literal_times(text))}
    assert needed == set(ALLOWED), "take out of ALLOWED what is mended"


@pytest.mark.parametrize(
    "text",
    [
        "producer.send(topic, b'v', timestamp_ms=1_700_000_000_000 + number)",
        "BASE_S = 1700000000",
        "at_us = 1_750_000_000_000_000",
        "at_ns = [1750000000000000000]",
        "headers == {'dlq.original_timestamp': b'1700000000000'}",
        "new ProducerRecord<>(topic, 0, 1700000000000L, key, value)",
        "await producer.send({ timestamp: 1700000000000n })",
        "float_s = 1_700_000_000.5",
    ],
)
def test_a_literal_time_is_caught(text: str) -> None:
    assert len(list(literal_times(f"\n{text}\n"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "segment_bytes = 1_073_741_824",
        "limits = (2147483647, -2147483649)",
        "log_bytes: int = 1_000_000_000",
        "first_ms + 3_600_000",
        "chance = random.Random(20130708)",
        "share = 0.1700000000",
        "name = 'v1700000000'",
        "far_ms = 5_100_000_000_000",
    ],
)
def test_a_number_that_is_no_time_passes(text: str) -> None:
    assert list(literal_times(text)) == []


def test_a_batch_with_the_time_of_simulated_clocks_is_caught() -> None:
    begin = "from tests.batches import NOW_MS, batch, header\n"
    assert list(batches_without_a_time(f"{begin}batch(1, size=3)")) == ["2: batch() without timestamp="]
    assert list(batches_without_a_time(f"{begin}at = NOW_MS + 1")) == ["2: NOW_MS"]
    assert list(batches_without_a_time(f"{begin}header(batch(1, timestamp=first_ms))")) == []
    assert list(batches_without_a_time("def batch() -> None: ...\nbatch()")) == [], "another function"


def test_any_test_that_starts_a_broker_is_checked() -> None:
    assert uses_a_real_broker("tests/client/test_any.py", "")
    assert uses_a_real_broker("tests/unit/test_any.py", "from strandline.testing import running_broker")
    assert not uses_a_real_broker("tests/unit/test_any.py", "from tests.batches import batch")

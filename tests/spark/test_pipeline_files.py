"""Files of every kind as a pipeline's source: what is in them comes out of topics once, and what is wrong with them as
dead letters."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.pipeline.runtime.runner import Runner
from strandline.pipeline.runtime.validation import validate
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.yaml_lines import SpecError
from tests.spark.topics import rows_of

SPEC = """
pipeline: backfill
brokers: {brokers}
checkpoint: checkpoint
dead-letters: {topic}.dlq
sources:
  csv:
    files: csv/*.csv
    max-files-per-batch: 1
    decode:
      format: csv
      options: {{header: true}}
      schema: {{id: bigint not null, name: string}}
  json:
    files: json
    max-files-per-batch: 1
    decode:
      format: json
      schema: {{id: bigint not null, name: string}}
  text:
    files: text/*.txt
    decode: {{format: text}}
  parquet:
    files: parquet
    options: {{pathGlobFilter: '*.parquet'}}
    decode: {{format: parquet}}
    rules: [{{name: small, check: id < 400}}]
transforms:
  - name: everything
    sql: |
      SELECT id, name FROM csv UNION ALL SELECT id, name FROM json
      UNION ALL SELECT id, name FROM parquet
      UNION ALL SELECT CAST(value AS BIGINT) AS id, 'text' AS name FROM text
sinks:
  - {{from: everything, topic: {topic}-out, key: id, partitions: 2}}
"""


def add_files(directory: Path, number: int) -> None:
    """Three good rows of each kind, with numbers of their own."""
    for kind in ("csv", "json", "text", "parquet"):
        (directory / kind).mkdir(exist_ok=True)
    start = number * 10
    (directory / "csv" / f"{number}.csv").write_text(
        "id,name\n" + "".join(f"{start + at},csv\n" for at in range(3)) + "x,csv\n,csv\n"
    )
    rows = [{"id": start + 100 + at, "name": "json"} for at in range(3)]
    (directory / "json" / f"{number}.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows) + "{\n"
    )
    (directory / "text" / f"{number}.txt").write_text("".join(f"{start + 200 + at}\n" for at in range(3)))
    table = pa.table({"id": [start + 300 + at for at in range(3)] + [start + 400], "name": ["parquet"] * 4})
    pq.write_table(table, directory / "parquet" / f"{number}.parquet")
    (directory / "parquet" / "_SUCCESS").touch()


def expected(numbers: range) -> Counter[tuple[int, str]]:
    kinds = ("csv", "json", "text", "parquet")
    return Counter(
        (number * 10 + first * 100 + at, kind)
        for number in numbers
        for first, kind in enumerate(kinds)
        for at in range(3)
    )


def test_files_come_out_once_and_new_ones_are_found(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(brokers=bootstrap, topic=topic))
    for number in (1, 2):
        add_files(tmp_path, number)
    for last in (2, 3):
        add_files(tmp_path, last)  # of the first run again, which changes nothing
        Runner(load(path), spark=spark).run()
        found = [json.loads(row.value) for row in rows_of(bootstrap, f"{topic}-out", 2)]
        assert Counter((row["id"], row["name"]) for row in found) == expected(range(1, last + 1))
    letters = rows_of(bootstrap, f"{topic}.dlq", 1)
    said = Counter((letter.value, dict(letter.headers)["dlq.error"]) for letter in letters)
    no_csv = b"the line is not CSV that fits the schema"
    assert said == Counter(
        {
            (b"x,csv", no_csv): 3,
            (b",csv", b"the field id is missing or null"): 3,
            (b"{", b"the value is not a JSON object that fits the schema"): 3,
            **{
                (b'{"id":%d,"name":"parquet"}' % (number * 10 + 400), b"rule small is not met: id < 400"): 1
                for number in (1, 2, 3)
            },
        }
    )
    files = {dict(letter.headers)["file"].rpartition(b"/")[2] for letter in letters}
    assert files >= {b"1.csv", b"2.jsonl", b"3.parquet"}


def test_parquet_without_files_needs_a_schema(spark: Any, bootstrap: str, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(brokers=bootstrap, topic=topic))
    for kind in ("csv", "json", "text"):
        (tmp_path / kind).mkdir()
    with pytest.raises(SpecError, match=r"spec.yaml:\d+: sources.parquet: no columns are found in parquet"):
        validate(load(path), with_brokers=False, spark=spark)

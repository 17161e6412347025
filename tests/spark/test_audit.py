"""The audit finds each anomaly that is planted, names it, and finds nothing where nothing is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strandline.cli.main import main
from strandline.client.sync import Admin, Producer
from strandline.pipeline.audit.audit import Audit, AuditError, run_audit
from strandline.pipeline.audit.report import AuditReport
from strandline.pipeline.runtime import session
from strandline.spark.runtime.pyspark_logging import silence_query_errors
from tests.json_shapes import checked_lines

Row = dict[str, Any]


class Told:
    """A topic of twenty records of four keys, and the ledger of what its producer was told."""

    def __init__(self, bootstrap: str, topic: str, ledger: Path) -> None:
        self.bootstrap, self.topic, self.ledger = bootstrap, topic, ledger
        self.rows: list[Row] = []
        for number in range(20):
            self.produce(number, number)

    def produce(self, number: int, sequence: int, *, is_told: bool = True) -> None:
        key = f"key-{number % 4}"
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            told = producer.send_and_wait(
                self.topic, b'{"order":%d}' % number, key.encode(), partition=number % 2
            )
        if is_told:
            place = {"topic": told.topic, "partition": told.partition, "offset": told.offset}
            self.rows.append({"id": number, **place, "key": key, "sequence": sequence})

    def write(self) -> None:
        self.ledger.write_text("".join(json.dumps(row) + "\n" for row in self.rows))

    def audited(self, spark: Any, **more: Any) -> AuditReport:
        self.write()
        record_id = "get_json_object(cast(value as string), '$.order')"
        settings = {"ledger": str(self.ledger), "record_id": record_id, **more}
        return run_audit(spark, Audit(bootstrap_servers=self.bootstrap, **settings))


@pytest.fixture
def told(bootstrap: str, topic: str, admin: Admin, tmp_path: Path) -> Told:
    admin.create_topic(topic, partitions=2)
    return Told(bootstrap, topic, tmp_path / "ledger.jsonl")


def nothing(told: Told) -> None:
    return None


def lose(told: Told) -> None:
    """The producer was told of a record that is not there."""
    told.rows.append(
        {"id": 99, "topic": told.topic, "partition": 1, "offset": 10, "key": "k", "sequence": 99}
    )


def duplicate(told: Told) -> None:
    told.produce(7, 7, is_told=False)


def acknowledge_twice(told: Told) -> None:
    told.rows.append(told.rows[4])


def misplace(told: Told) -> None:
    told.rows[3]["offset"] += 100


def reorder(told: Told) -> None:
    """Moves the first record of key-2 after the others."""
    told.rows[2]["sequence"] = 1000


def surprise(told: Told) -> None:
    told.produce(500, 500, is_told=False)


def unname(told: Told) -> None:
    del told.rows[5]["id"]


@pytest.mark.parametrize(
    ("plant", "expected", "partition", "sample"),
    [
        (nothing, {}, None, None),
        (lose, {"lost": 1}, 1, "id 99, acknowledged at"),
        (duplicate, {"duplicated": 1}, 1, "2 times"),
        (acknowledge_twice, {"duplicated": 1}, 0, "id 4"),
        (misplace, {"misplaced": 1}, 1, "offset 101, found at"),
        (reorder, {"reordered": 4}, 0, "id 6,"),
        (surprise, {"unexpected": 1}, 0, "id 500, found at"),
        (unname, {"unnamed": 1, "unexpected": 1}, 1, "id 5"),
    ],
)
def test_planted_mistakes_are_found(
    spark: Any,
    told: Told,
    plant: Callable[[Told], None],
    expected: dict[str, int],
    partition: int | None,
    sample: str | None,
) -> None:
    plant(told)
    report = told.audited(spark)
    assert {name: count for name, count in report.counts.items() if count} == expected
    assert report.acknowledged == len(told.rows)
    assert report.held == (set(expected) <= {"unexpected"})
    text = report.as_text()
    assert ("VERDICT: held" in text) == report.held
    if partition is not None:
        assert f"{told.topic}-{partition}" in report.partitions
        assert sample is not None
        assert sample in text
    document = json.dumps(report.as_json())
    assert checked_lines(document, ["pipeline", "audit", "ledger"])[0]["held"] == report.held


def test_a_pipelines_output_is_audited_by_ids_wherever_they_are(spark: Any, told: Told, admin: Admin) -> None:
    out = f"{told.topic}-out"
    admin.create_topic(out, partitions=3)
    with Producer(bootstrap_servers=told.bootstrap) as producer:
        for row in told.rows[:-1]:
            producer.send_and_wait(
                out, b"-", headers=[("order", b"%d" % row["id"])], partition=row["id"] % 4 % 3
            )
    by_header = "cast(filter(headers, h -> h.key = 'order')[0].value as string)"
    report = told.audited(spark, topics=(out,), record_id=by_header)
    assert {name: count for name, count in report.counts.items() if count} == {"lost": 1}
    assert (report.acknowledged, report.read) == (20, 19)
    assert report.samples["lost"][0]["id"] == "19"


def test_a_ledger_may_be_a_topic_or_parquet(spark: Any, told: Told, admin: Admin, tmp_path: Path) -> None:
    assert told.audited(spark).held
    admin.create_topic(f"{told.topic}-ledger", partitions=1)
    with Producer(bootstrap_servers=told.bootstrap) as producer:
        for row in told.rows:
            producer.send_and_wait(f"{told.topic}-ledger", json.dumps(row).encode())
    parquet = str(tmp_path / "ledger.parquet")
    spark.read.json(str(told.ledger)).drop("key", "sequence").write.parquet(parquet)
    for ledger in (f"topic:{told.topic}-ledger", parquet):
        report = told.audited(spark, ledger=ledger)
        assert report.held
        assert report.acknowledged == report.read == 20
        assert report.has_order == ledger.startswith("topic:")


class UnstoppedSession:
    """The tests' session, which a command does not stop."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None: ...


def test_an_impossible_audit_is_an_error_of_one_line(
    spark: Any, told: Told, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "start_session", lambda *_: UnstoppedSession(spark))
    silence_query_errors()
    told.write()
    broken = tmp_path / "broken.parquet"
    broken.write_text("this is no Parquet")
    for ledger, more, words in (
        (told.ledger, ["--id", "cast(valu as string)"], "`valu` cannot be resolved"),
        (told.ledger, ["--topic", "nowhere"], "UNKNOWN_TOPIC_OR_PARTITION: topic nowhere"),
        (broken, [], "broken.parquet"),
        (tmp_path / "nothing", [], "Path does not exist"),
    ):
        server = ["--bootstrap-server", told.bootstrap]
        assert main(["pipeline", "audit", str(ledger), *server, *more]) == 2
        (line,) = [each for each in capfd.readouterr().err.splitlines() if "WARN" not in each]
        assert line.startswith("strandline: the audit cannot be made: ")
        assert words in line


def test_an_empty_ledger_proves_nothing(spark: Any, told: Told) -> None:
    told.rows.clear()
    with pytest.raises(AuditError, match="names no topic"):
        told.audited(spark)
    with pytest.raises(AuditError, match="has no acknowledged record"):
        told.audited(spark, topics=(told.topic,))

"""Spark's own parser judges patterns of times before anything runs, and each mistake has its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline.pipeline.runtime.validation import validate
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.yaml_lines import SpecError
from tests.unit.pipeline.specs import SPEC

HINT = "text stands between quotes, as in yyyy-MM-dd'T'HH:mm"


def of_topic(option: str) -> str:
    """Returns a spec whose option is on line 9."""
    return SPEC.replace("format: json", f"format: json\n      options: {{{option}}}")


def of_files(option: str) -> str:
    """Returns a spec whose option is on line 7."""
    files = f"    files: x\n    options: {{{option}}}"
    return SPEC.replace("    topic: orders", files, 1) + "dead-letters: dead\n"


def mistakes(spark: Any, directory: Path, text: str) -> list[tuple[int, str]]:
    path = directory / "spec.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as raised:
        validate(load(path, {}), with_brokers=False, spark=spark)
    return [(each.line, each.text) for each in raised.value.mistakes]


@pytest.mark.parametrize(
    ("name", "pattern", "text"),
    [
        ("timestampFormat", "yyyy-MM-ddTHH:mm", "Unknown pattern letter: T"),
        ("timestampFormat", "yyyy-MM-dd'T", "Pattern ends with an incomplete string literal"),
        ("timestampFormat", "YYYY-MM-dd", "week-based character: Y"),
        ("timestampFormat", "nnn", "Illegal pattern character found in datetime pattern: n"),
        ("timestampFormat", "EEE, dd MMM yyyy", "Illegal pattern character found in datetime pattern: E"),
        ("dateFormat", "yyyy-MM-ddd", "Too many pattern letters: d"),
        ("DATEFORMAT", "yyyyyyy", "Too many letters in datetime pattern"),
        ("timestampNTZFormat", "yyyy]", "it contains ] without previous ["),
        ("dateFormat", "yyyy#", "reserved character: '#'"),
        ("dateFormat", "yyyy{MM}", "reserved character: '{'"),
    ],
)
def test_a_pattern_that_spark_does_not_read_is_a_mistake_with_its_line(
    spark: Any, tmp_path: Path, name: str, pattern: str, text: str
) -> None:
    option = f'{name}: "{pattern}"'
    ((line, said),) = mistakes(spark, tmp_path, of_topic(option))
    assert line == 9
    assert said.startswith(f"sources.orders.decode.options.{name} cannot be {pattern!r}: ")
    assert text in said
    assert said.endswith(HINT)
    assert "SQLSTATE" not in said
    ((line, said),) = mistakes(spark, tmp_path, of_files(option))
    assert line == 7
    assert said.startswith(f"sources.orders.options.{name} cannot be {pattern!r}: ")


def test_all_mistakes_in_patterns_are_reported_together(spark: Any, tmp_path: Path) -> None:
    options = "timestampFormat: YYYY,\n                dateFormat: yyyy-MM-ddd"
    assert [line for line, _ in mistakes(spark, tmp_path, of_topic(options))] == [9, 10]


@pytest.mark.parametrize(
    "pattern",
    [
        "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]",
        "dd/MM/yyyy hh:mm a",
        "yyyy''MM",
        "yyyy[-MM",
        "yyyy年MM月",
        "'it''s' yyyy",
    ],
)
def test_a_pattern_that_spark_reads_is_none(spark: Any, tmp_path: Path, pattern: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(of_topic(f'timestampFormat: "{pattern}"'))
    validate(load(path, {}), with_brokers=False, spark=spark)


def test_patterns_are_those_of_the_parser_that_the_session_has(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    spark.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    try:
        path.write_text(of_topic("timestampFormat: YYYY-MM-dd"))
        validate(load(path, {}), with_brokers=False, spark=spark)
        ((line, said),) = mistakes(spark, tmp_path, of_topic("timestampFormat: yyyy-MM-ddTHH"))
        assert (line, "Illegal pattern character 'T'" in said) == (9, True), said
    finally:
        spark.conf.unset("spark.sql.legacy.timeParserPolicy")

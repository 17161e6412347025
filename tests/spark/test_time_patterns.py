"""Patterns of times are judged as Spark's own parsers judge them."""

from __future__ import annotations

import string
from typing import Any

import pytest

from strandline.pipeline.spec.time_patterns import why_no_pattern

WHOLE = [
    "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]",
    "yyyy-MM-dd'T'HH:mm",
    "dd/MM/yyyy hh:mm a",
    "yyyy-MM-ddTHH:mm",
    "yyyy-MM-dd'T",
    "yyyy''MM",
    "''",
    "yyyy[-MM",
    "yyyy]",
    "yyyy{MM}",
    "yyyy#MM",
    "yyyy年MM月",
    "'it''s' yyyy",
    "EEE, dd MMM yyyy",
]


@pytest.mark.timeout(300)
def test_spark_takes_the_same_patterns(spark: Any) -> None:
    jvm = spark.sparkContext._jvm
    zone = jvm.java.time.ZoneId.of("UTC")

    def takes(pattern: str) -> bool:
        try:
            made = jvm.org.apache.spark.sql.catalyst.util.TimestampFormatter.apply(pattern, zone, True)
            made.validatePatternString(False)
        except Exception:
            return False
        return True

    patterns = [letter * count for letter in string.ascii_letters for count in range(1, 12)]
    differing = [each for each in (*patterns, *WHOLE) if takes(each) != (why_no_pattern(each) is None)]
    assert differing == []

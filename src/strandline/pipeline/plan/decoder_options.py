"""Has Spark check the options of decoders beforehand: it would find a wrong option only when it decodes the first
value. A time pattern that Spark cannot read is not even an error then: every time is null, and every value becomes a
dead letter.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from strandline.pipeline.plan.spark_errors import root_cause
from strandline.pipeline.spec.spec import Source, Spec
from strandline.pipeline.spec.stages import PATTERN_OPTIONS
from strandline.pipeline.spec.yaml_lines import Mistake, Text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

# Spark's error names and codes, around the sentence that says what is wrong.
_CONDITION: Final = re.compile(r"\A\[[\w.]+\]\s*|\s*SQLSTATE: .*")
_HINT: Final = (
    "yyyy is the year, dd the day, SSS the fraction, and text stands between quotes, as in yyyy-MM-dd'T'HH:mm"
)


def check_options(session: SparkSession, source: Source) -> None:
    """Raises Spark's error about a decoder's options. Spark decodes a constant while it plans the query, so no job
    runs."""
    from pyspark.sql import functions as f

    decode = {"json": f.from_json, "csv": f.from_csv}.get(source.decode.format)
    # Lines of JSON are read as text first: the source's own options are for that.
    own = source.options if source.decode.format == "csv" else {}
    options = {**own, **source.decode.options}
    if decode is not None and options:
        rows = session.range(1).select(decode(f.lit(""), "number int", options))
        rows._jdf.queryExecution().optimizedPlan()


def time_pattern_mistakes(session: SparkSession, spec: Spec) -> list[Mistake]:
    """Returns the mistakes in patterns such as `timestampFormat`, each with its line. Spark's own time parser judges
    them."""
    mistakes = []
    for source in spec.sources:
        name = f"sources.{source.name}"
        options = list(_patterns(f"{name}.decode.options", source.decode.options))
        if source.files is not None:
            options += _patterns(f"{name}.options", source.options)
        for option, pattern in options:
            why = _why_no_pattern(session, pattern)
            if why is not None:
                text = f"{option} cannot be {str(pattern)!r}: {why}; {_HINT}"
                mistakes.append(Mistake(file=spec.file, line=pattern.line, text=text))
    return mistakes


def _patterns(where: str, options: Mapping[str, str]) -> Iterator[tuple[str, Text]]:
    for name, value in options.items():
        if name.lower() in PATTERN_OPTIONS and isinstance(value, Text):
            yield f"{where}.{name}", value


def _why_no_pattern(session: SparkSession, pattern: str) -> str | None:
    """Returns Spark's reason for refusing a pattern; None if Spark accepts it, or cannot be asked."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    jvm: Any = session.sparkContext._jvm
    try:
        utc = jvm.java.time.ZoneId.of("UTC")
        formatter = jvm.org.apache.spark.sql.catalyst.util.TimestampFormatter.apply(str(pattern), utc, True)
        formatter.validatePatternString(False)
    except (PySparkException, Py4JJavaError) as error:
        reason = " ".join(str(root_cause(error)).split())
        return _CONDITION.sub("", reason).rstrip(".")
    except Exception as error:
        # These names of Spark are not public. If a version has other names, a bad pattern makes dead letters.
        _log.debug("patterns of times cannot be checked: %s", error)
    return None

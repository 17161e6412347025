"""Files as a source, for a backfill: lines of text, which are decoded as a record's value is, CSV, or Parquet.

Rows have the columns of ORIGIN, as records of topics have. Rows of CSV and Parquet already have their fields, in a
struct. The dead letter of such a row has the CSV line if it could not be read, otherwise the row as CSV, or as JSON for
Parquet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from strandline.pipeline.spec.spec import Source, Spec
from strandline.pipeline.spec.stages import CORRUPT
from strandline.pipeline.spec.types import quoted
from strandline.pipeline.spec.yaml_lines import Mistake, SpecError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The fields of a row that needs no decoding.
FIELDS: Final = "_fields"
# Only the file's name tells the origin of a row.
_ORIGIN: Final = (
    "CAST(NULL AS STRING) AS _topic",
    "CAST(NULL AS INT) AS _partition",
    "CAST(NULL AS BIGINT) AS _offset",
    "_metadata.file_modification_time AS _timestamp",
    "CAST(NULL AS BINARY) AS _key",
    "array(named_struct('key', 'file', 'value', CAST(_metadata.file_path AS BINARY))) AS _headers",
)


def file_rows(session: SparkSession, spec: Spec, source: Source) -> DataFrame:
    """Returns the rows of a source that reads files."""
    assert source.files is not None
    path = spec.located(source.files)
    reader = session.readStream.options(**source.options)
    match source.decode.format:
        case "csv":
            fields = [f"{quoted(each.name)} {each.type}" for each in source.decode.columns]
            options = {
                **source.decode.options,
                "mode": "PERMISSIVE",
                "columnNameOfCorruptRecord": CORRUPT,
                # Without this option Spark parses a line only as far as its columns are used.
                "columnPruning": "false",
            }
            reader = reader.options(**options).schema(", ".join([*fields, f"`{CORRUPT}` string"]))
            rows = reader.csv(path)
            own = _struct([each.name for each in source.decode.columns])
            value = f"CAST(coalesce(`{CORRUPT}`, to_csv({own})) AS BINARY)"
            return rows.selectExpr(*_ORIGIN, f"{value} AS _value", f"{own} AS {FIELDS}", f"`{CORRUPT}`")
        case "parquet":
            schema: Any = ", ".join(
                f"{quoted(each.name)} {each.type}" for each in source.decode.columns
            ) or _inferred_schema(session, spec, source, path)
            rows = reader.options(**source.decode.options).schema(schema).parquet(path)
            own = _struct(rows.columns)
            return rows.selectExpr(
                *_ORIGIN, f"CAST(to_json({own}) AS BINARY) AS _value", f"{own} AS {FIELDS}"
            )
        case _:
            return reader.text(path).selectExpr(*_ORIGIN, "CAST(value AS BINARY) AS _value")


def _struct(names: list[str]) -> str:
    return f"struct({', '.join(map(quoted, names))})"


def _inferred_schema(session: SparkSession, spec: Spec, source: Source, path: str) -> Any:
    try:
        return session.read.options(**source.options).parquet(path).schema
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        where = f"sources.{source.name}: no columns are found in {source.files}"
        text = f"{where}, and the spec has no schema for them: {reason}"
        raise SpecError([Mistake(file=spec.file, line=source.line, text=text)]) from error

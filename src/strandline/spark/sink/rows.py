"""The columns of a DataFrame that is written: key, value, headers, topic, partition, as in Spark's `kafka` format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from strandline.spark.options import OptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

# By column: its types as Spark names them, and in words.
_TYPES: Final = {
    "key": (("string", "binary"), "a string or binary"),
    "value": (("string", "binary"), "a string or binary"),
    "topic": (("string",), "a string"),
    "partition": (("int",), "an int"),
    "headers": (("array<struct<key:string,value:binary>>",), "an array<struct<key: string, value: binary>>"),
}


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raises OptionError unless rows of this schema can be written."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "value" not in types:
        raise OptionError(f"there is no column value to write: the columns are {', '.join(types) or 'none'}")
    if topic is None and "topic" not in types:
        raise OptionError("the topic is missing: set the option topic, or add a column topic")
    for name, (allowed, words) in _TYPES.items():
        if name == "topic" and topic is not None:
            continue  # The option decides, and the column may be anything.
        if name in types and types[name] not in allowed:
            raise OptionError(f"the column {name} must be {words}, and is {types[name]}: cast it")


def split_by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yields the rows of each topic: all rows for the topic of the option, otherwise by the column."""
    if topic is not None:
        yield topic, batch
        return
    import pyarrow.compute as pc

    names = batch.column("topic")
    if names.null_count:
        raise ValueError("a row has null as its topic: set the option topic, or filter such rows out")
    topics = pc.unique(names).to_pylist()
    for name in topics:
        yield name, batch if len(topics) == 1 else batch.filter(pc.equal(names, name))

"""What a spec says in SQL, as Spark takes it: queries, conditions, and what records are made of.

Each is tried as it will be used, beside the columns of its stage, and raises what Spark says of it: an aggregate alone
would be a query of its own that nobody has asked for. No job runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CATALYST: Final = "org.apache.spark.sql.catalyst.plans.logical"
# What Spark carries out as soon as it has read it, or makes into that: to make a table, to set something, to insert.
_STATEMENTS: Final = (f"{_CATALYST}.Command", f"{_CATALYST}.ParsedStatement")


class NotFittingError(ValueError):
    """A text that Spark would take, and that is something else than what is needed."""


def query(session: SparkSession, text: str) -> DataFrame:
    """The rows of a query. A statement that is none is refused unread: Spark would carry it out at once."""
    inside: Any = session
    jvm: Any = session.sparkContext._jvm
    kinds = [jvm.java.lang.Class.forName(name) for name in _STATEMENTS]
    left = [inside._jsparkSession.sessionState().sqlParser().parsePlan(text)]
    while left:
        node = left.pop()
        if any(kind.isInstance(node) for kind in kinds):
            name = node.getClass().getSimpleName()
            raise NotFittingError(f"this is no query but a statement ({name}): say SELECT … instead")
        children = node.children()
        left += [children.apply(at) for at in range(children.size())]
    return session.sql(text)


def condition(rows: DataFrame, text: str) -> Column:
    """An expression that is true or false."""
    from pyspark.sql import functions as f

    found = f.expr(text)
    kind = rows.select("*", found).schema.fields[-1].dataType.simpleString()
    if kind != "boolean":
        raise NotFittingError(f"this must be true or false, and is {kind}: say when it is true")
    return found


def record_bytes(rows: DataFrame, text: str) -> Column:
    """A key or value: bytes as they are, and of everything else its text."""
    from pyspark.sql import functions as f

    found = f.expr(text)
    is_binary = rows.select("*", found).schema.fields[-1].dataType.simpleString() == "binary"
    found = found if is_binary else found.cast("string").cast("binary")
    rows.select("*", found)
    return found

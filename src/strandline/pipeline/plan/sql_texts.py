"""The SQL of a spec, as Spark takes it: queries, conditions, and the bytes of records.

Each text is tried as it will be used, together with the columns of its stage, and raises Spark's error. By itself an
aggregate would be a valid query, although it is not valid there. No job runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CATALYST: Final = "org.apache.spark.sql.catalyst.plans.logical"
# Statements that Spark runs as soon as it has parsed them, such as CREATE TABLE, SET or INSERT.
_STATEMENTS: Final = (f"{_CATALYST}.Command", f"{_CATALYST}.ParsedStatement")


class NotFittingError(ValueError):
    """Spark accepts the text, but the spec needs something else there."""


def query(session: SparkSession, text: str) -> DataFrame:
    """Returns the rows of a query. A statement that is not a query is refused before Spark sees it: Spark would run it
    at once."""
    internals: Any = session
    jvm: Any = session.sparkContext._jvm
    kinds = [jvm.java.lang.Class.forName(name) for name in _STATEMENTS]
    remaining = [internals._jsparkSession.sessionState().sqlParser().parsePlan(text)]
    while remaining:
        node = remaining.pop()
        if any(kind.isInstance(node) for kind in kinds):
            name = node.getClass().getSimpleName()
            raise NotFittingError(f"this is a statement ({name}) and not a query: write SELECT … instead")
        children = node.children()
        remaining += [children.apply(at) for at in range(children.size())]
    return session.sql(text)


def condition(rows: DataFrame, text: str) -> Column:
    """Returns a text as a condition, an expression that is true or false."""
    from pyspark.sql import functions as f

    expression = f.expr(text)
    kind = rows.select("*", expression).schema.fields[-1].dataType.simpleString()
    if kind != "boolean":
        raise NotFittingError(f"this must be a condition (true or false), and is {kind}")
    return expression


def record_bytes(rows: DataFrame, text: str) -> Column:
    """Returns a key or value as bytes: binary columns unchanged, all others as text."""
    from pyspark.sql import functions as f

    expression = f.expr(text)
    is_binary = rows.select("*", expression).schema.fields[-1].dataType.simpleString() == "binary"
    expression = expression if is_binary else expression.cast("string").cast("binary")
    rows.select("*", expression)
    return expression

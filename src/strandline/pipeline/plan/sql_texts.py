"""The SQL of a spec, as Spark takes it: queries, conditions, and the bytes of records.

Each text is tried as it will be used, beside the columns of its stage, and raises Spark's error: an aggregate alone
would be a query of its own that nobody has asked for. No job runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CATALYST: Final = "org.apache.spark.sql.catalyst.plans.logical"
# Statements that Spark carries out as soon as it has parsed them: to create a table, to set something, to insert.
_STATEMENTS: Final = (f"{_CATALYST}.Command", f"{_CATALYST}.ParsedStatement")


class NotFittingError(ValueError):
    """Spark would take a text, but it is something else than what is needed."""


def query(session: SparkSession, text: str) -> DataFrame:
    """Returns the rows of a query. A statement that is none is refused unread: Spark would carry it out at once."""
    internals: Any = session
    jvm: Any = session.sparkContext._jvm
    kinds = [jvm.java.lang.Class.forName(name) for name in _STATEMENTS]
    remaining = [internals._jsparkSession.sessionState().sqlParser().parsePlan(text)]
    while remaining:
        node = remaining.pop()
        if any(kind.isInstance(node) for kind in kinds):
            name = node.getClass().getSimpleName()
            raise NotFittingError(f"this is no query but a statement ({name}): say SELECT … instead")
        children = node.children()
        remaining += [children.apply(at) for at in range(children.size())]
    return session.sql(text)


def condition(rows: DataFrame, text: str) -> Column:
    """Returns an expression that is true or false."""
    from pyspark.sql import functions as f

    expression = f.expr(text)
    kind = rows.select("*", expression).schema.fields[-1].dataType.simpleString()
    if kind != "boolean":
        raise NotFittingError(f"this must be true or false, and is {kind}: say when it is true")
    return expression


def record_bytes(rows: DataFrame, text: str) -> Column:
    """Returns a key or value: bytes as they are, and of everything else its text."""
    from pyspark.sql import functions as f

    expression = f.expr(text)
    is_binary = rows.select("*", expression).schema.fields[-1].dataType.simpleString() == "binary"
    expression = expression if is_binary else expression.cast("string").cast("binary")
    rows.select("*", expression)
    return expression

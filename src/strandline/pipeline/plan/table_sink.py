"""Keeps a table of the last row per key from a stream of changes (CDC).

The table is a directory of versions in Parquet and a file `current.json` that names one. A batch merges its changes
into the current version, writes the next one beside it, and then replaces that file: readers see either version. The
file also names the query and the batch, so that a batch that Spark repeats is skipped. Rules:
1. From the query that wrote last, only the batch after the current one is written. From another query any batch is
   written, and into a new table the first one.
2. The current batch itself is skipped if it is the same by its fingerprint.
3. Everything else is refused: either the checkpoint or the table is older than the other, and changes would be lost.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from strandline.pipeline.plan.tables import last_row_per_key
from strandline.spark.sink.batch_decision import LineageError, fingerprint_of, query_id_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CURRENT: Final = "current.json"
_NEW: Final = f"{_CURRENT}.new"
# A version's name has the id of the query that wrote it, a UUID, and the number of the batch.
_VERSION: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+")


class NoTableError(RuntimeError):
    """The directory has files that are not a table of a pipeline, and must stay unchanged."""


class TableSink:
    """The function that `foreachBatch` calls. The expression `deleted` is true for a change that deletes its key."""

    def __init__(self, directory: str, keys: Sequence[str], deleted: str | None) -> None:
        self._directory = _local(directory)
        self._keys = list(keys)
        self._deleted = deleted or "false"

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        query_id, fingerprint = query_id_of(df), fingerprint_of(df, batch_id)
        current = _current(self._directory)
        refusal = why_no_table(self._directory)
        if refusal is not None:
            raise NoTableError(refusal)
        if is_batch_written(current, query_id, batch_id, fingerprint, self._directory):
            # A query that keeps state must run every batch, or Spark does not continue after it.
            df.write.format("noop").mode("overwrite").save()
            return
        version = f"{query_id}-{batch_id}"
        # The rows are used twice below. If Spark computed them twice, it would count them twice, and both results could
        # differ if tables are joined.
        changes = self._last_changes(df).persist()
        try:
            table = changes.where(f"NOT coalesce({self._deleted}, false)").select(
                *self._table_columns(changes)
            )
            if current:
                old = df.sparkSession.read.parquet(str(self._directory / current["version"]))
                unchanged = old.join(changes.select(*self._keys), self._keys, "left_anti")
                table = unchanged.unionByName(table, allowMissingColumns=True)
            table.write.mode("overwrite").parquet(str(self._directory / version))
        finally:
            changes.unpersist()
        self._switch(
            {"version": version, "query": query_id, "batch": batch_id, "fingerprint": fingerprint},
            current.get("version"),
        )

    def _last_changes(self, df: DataFrame) -> DataFrame:
        changes = df.where(" AND ".join(f"`{key}` IS NOT NULL" for key in self._keys))
        return last_row_per_key(changes, self._keys)

    def _table_columns(self, rows: DataFrame) -> list[str]:
        """Returns the columns of the rows that the table has, its keys included: the next batch is merged by them."""
        return [f"`{name}`" for name in rows.columns if name in self._keys or not name.startswith("_")]

    def _switch(self, current: dict[str, Any], before: str | None) -> None:
        """Makes a version the current one. The version before it is kept for its readers, and older ones are
        deleted."""
        new = self._directory / _NEW
        new.write_text(json.dumps(current))
        os.replace(new, self._directory / _CURRENT)
        for path in self._directory.iterdir():
            if _VERSION.fullmatch(path.name) and path.name not in (current["version"], before):
                shutil.rmtree(path)


def is_batch_written(
    current: Mapping[str, Any],
    query_id: str | None,
    batch_id: int,
    fingerprint: str | None,
    directory: str | Path,
) -> bool:
    """True if the table's file says that the batch is in the table; raises LineageError. Without a fingerprint a batch
    is known by its number alone."""
    if current and current["query"] != query_id:
        return False
    last = current.get("batch", -1)
    if batch_id == last + 1:
        return False
    known = current.get("fingerprint")
    if batch_id == last and (None in (fingerprint, known) or fingerprint == known):
        return True
    other = "another batch" if batch_id == last else "batch"
    there = f"the last one there is {other} {last}" if current else "there is no table"
    raise LineageError(
        f"Spark asks to write batch {batch_id} into {directory}, and {there}: checkpoint and table do not belong "
        "together, perhaps because one of them was deleted or restored from a copy. Restore the other one too, or "
        "delete the checkpoint of this query and the table's directory: then the table is made of all changes that "
        "the topics still have. If the table is not deleted, they are merged into it, and rows stay whose deletion "
        "was compacted away"
    )


def why_no_table(directory: str | Path) -> str | None:
    """Returns the reason why the directory cannot hold a table, such as files of somebody else; None if it can."""
    path = _local(str(directory))
    if not path.exists() or (path / _CURRENT).exists():
        return None
    if not path.is_dir():
        return f"{path} is not a directory"
    # A run that was killed in its first batch leaves a version, and perhaps the temporary file that would have become
    # `current.json`.
    others = sorted(
        each.name for each in path.iterdir() if each.name != _NEW and not _VERSION.fullmatch(each.name)
    )
    if not others:
        return None
    return (
        f"{path} contains {others[0]} and is not a table of a pipeline: name an empty directory, or a new one"
    )


def read_table(spark: SparkSession, directory: str | Path) -> DataFrame:
    """Returns the current version of a table that a pipeline writes."""
    path = _local(str(directory))
    current = _current(path)
    if not current:
        raise FileNotFoundError(f"{path} is not a table of a pipeline, or nothing was written to it yet")
    return spark.read.parquet(str(path / current["version"]))


def _current(directory: Path) -> dict[str, Any]:
    try:
        current: dict[str, Any] = json.loads((directory / _CURRENT).read_text())
    except FileNotFoundError:
        return {}
    return current


def _local(directory: str) -> Path:
    return Path(urlsplit(directory).path if directory.startswith("file:") else directory)

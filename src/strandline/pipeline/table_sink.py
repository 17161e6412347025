"""Keeps a table of the last row per key from a stream of changes: what a topic of changes (CDC) says is there now.

The table is a directory of versions in Parquet and a file `current.json` that names one. A batch merges its changes
into the current version, writes the next one beside it, and then replaces that file: readers see the one or the other.
The file also names the query and the batch, so that a batch which Spark repeats is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from strandline.pipeline.tables import newest
from strandline.spark.sinks import QUERY_ID_PROPERTY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CURRENT: Final = "current.json"


class TableSink:
    """What `foreachBatch` calls. `deleted` is an expression that is true for a change that removes its key."""

    def __init__(self, directory: str, keys: Sequence[str], deleted: str | None) -> None:
        self._directory = _local(directory)
        self._keys = list(keys)
        self._deleted = deleted or "false"

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        query_id = df.sparkSession.sparkContext.getLocalProperty(QUERY_ID_PROPERTY)
        current = _current(self._directory)
        if current.get("query") == query_id and current["batch"] >= batch_id:
            return
        changes = self._last_changes(df)
        table = changes.where(f"NOT coalesce({self._deleted}, false)").select(*_own(changes))
        if current:
            old = df.sparkSession.read.parquet(str(self._directory / current["version"]))
            kept = old.join(changes.select(*self._keys), self._keys, "left_anti")
            table = kept.unionByName(table, allowMissingColumns=True)
        version = f"{query_id}-{batch_id}"
        table.write.mode("overwrite").parquet(str(self._directory / version))
        self._switch({"version": version, "query": query_id, "batch": batch_id}, current.get("version"))

    def _last_changes(self, df: DataFrame) -> DataFrame:
        changes = df.where(" AND ".join(f"`{key}` IS NOT NULL" for key in self._keys))
        return newest(changes, self._keys)

    def _switch(self, current: dict[str, Any], before: str | None) -> None:
        """The version before stays for those who are reading it; older ones go."""
        new = self._directory / f"{_CURRENT}.new"
        new.write_text(json.dumps(current))
        os.replace(new, self._directory / _CURRENT)
        for path in self._directory.iterdir():
            if path.is_dir() and path.name not in (current["version"], before):
                shutil.rmtree(path)


def read_table(spark: SparkSession, directory: str | Path) -> DataFrame:
    """The current version of a table that a pipeline keeps."""
    path = _local(str(directory))
    current = _current(path)
    if not current:
        raise FileNotFoundError(f"{path} is no table of a pipeline, or nothing was written to it yet")
    return spark.read.parquet(str(path / current["version"]))


def _own(rows: DataFrame) -> list[str]:
    return [f"`{name}`" for name in rows.columns if not name.startswith("_")]


def _current(directory: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((directory / _CURRENT).read_text())
    except FileNotFoundError:
        return {}
    return found


def _local(directory: str) -> Path:
    return Path(urlsplit(directory).path if directory.startswith("file:") else directory)

"""A pipeline's spec as values. The reader makes them from the YAML file and checks them as far as that works without
Spark. Stages have names and an order: sources, then transforms in the order of the file. A transform can read every
stage before it. Sinks read from stages. Texts that Spark will judge (SQL, expressions, patterns) keep the line of the
file on which they begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from strandline.avro.schema import AvroSource
from strandline.client.deadletter.letters import RetryPolicy
from strandline.pipeline.spec.registry import RegistryUse
from strandline.pipeline.spec.types import Column
from strandline.pipeline.spec.yaml_lines import Text

# The additional columns of every row of a source: the origin of the record, and its original bytes.
ORIGIN: Final = ("_topic", "_partition", "_offset", "_timestamp", "_key", "_value", "_headers")
TOPIC_SINK: Final = "topic"
TABLE_SINK: Final = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """How values are decoded: `json` or `avro` with a schema, `text`, or `raw` (key and value as they are); for files
    also `csv` and `parquet`, which may be without columns: then the files' own columns are used. With a registry the
    columns are those of the reader's schema."""

    format: str
    columns: tuple[Column, ...]
    options: Mapping[str, Text]
    avro: AvroSource | None = None
    registry: RegistryUse | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A condition on rows. With `is_retried` a refused record is tried again later, as often as the spec's `retry`
    says."""

    name: str
    check: Text
    is_retried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The steps at the end of a stage, in this order."""

    rules: tuple[Rule, ...] = ()
    watermark: tuple[Text, str] | None = None  # a column, and the allowed lateness of its rows
    dedupe: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Topics, or files for a backfill. With `is_table` it is the last record of each key, and the whole table is read
    again for every batch."""

    name: str
    line: int
    topics: tuple[str, ...]
    topic_lines: tuple[int, ...]
    files: str | None
    is_table: bool
    tombstones: str
    options: Mapping[str, str]
    decode: Decode
    finish: Finish
    is_encoded: bool = False  # a sink of the spec has a schema that may refuse rows

    def can_fail(self, transforms: Sequence[Transform]) -> bool:
        """True if a record of this source can become a dead letter. A rule after a transform may refuse records of any
        source."""
        can_decode_all = self.decode.format in ("raw", "parquet")
        return (
            not can_decode_all
            or self.is_encoded
            or any(each.required for each in self.decode.columns)
            or bool(self.finish.rules)
            or any(transform.finish.rules for transform in transforms)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """A stage over stages before it: either `sql`, or `function` over the DataFrames of `inputs`."""

    name: str
    line: int
    sql: Text | None
    function: Text | None
    inputs: tuple[Text, ...]
    finish: Finish


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """The destination of a stage's rows. `kind` is topic, table, parquet, console, delta or iceberg; `target` the
    topic, directory or table. `key` and `value` are expressions for a topic, and `encode` is the schema of a registry
    for its values. `columns` are the key of a table, or the columns by which Parquet has directories."""

    line: int
    stage: Text
    kind: str
    target: str
    target_line: int
    key: Text | None
    value: Text | None
    partitions: int | None
    configs: Mapping[str, str]
    columns: tuple[Text, ...]
    deleted: Text | None
    encode: RegistryUse | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When batches begin. `every` is an interval of Spark, such as `5 seconds`; None takes everything that is there
    now, in batches or once."""

    every: str | None = None
    is_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A whole pipeline, as its YAML file describes it."""

    file: str
    name: str
    brokers_line: int
    client: Mapping[str, str]  # settings of every client, including bootstrap.servers
    producer: Mapping[str, str]  # the same and more, for producers
    checkpoint: str
    checkpoint_line: int
    commit_group: str | None
    dead_letters: str | None
    retry: RetryPolicy | None
    mode: str  # Spark's output mode of the query that writes into topics
    trigger: Trigger
    master: str
    spark: Mapping[str, str]
    sources: tuple[Source, ...]
    transforms: tuple[Transform, ...]
    sinks: tuple[Sink, ...]

    @property
    def brokers(self) -> str:
        """The bootstrap servers of its cluster."""
        return self.client["bootstrap.servers"]

    @property
    def directory(self) -> Path:
        """The directory of the file, in which Python functions and relative paths are looked for."""
        return Path(self.file).resolve().parent

    def located(self, path: str) -> str:
        """Returns a path or URL of the spec, which is relative to its file."""
        return path if urlsplit(path).scheme else str(self.directory / path)

    def is_retried(self, source: Source) -> bool:
        """True if records of a source can come back through retry topics. A rule after a transform may refuse records
        of any source."""
        finishes = [source.finish, *(transform.finish for transform in self.transforms)]
        return (
            self.retry is not None
            and bool(source.topics)
            and not source.is_table
            and any(rule.is_retried for finish in finishes for rule in finish.rules)
        )

    def dead_letter_topic(self, topic: str) -> str:
        """Returns the topic of the dead letters of a source topic."""
        return self.dead_letters or f"{topic}.dlq"


def local_path(location: str) -> Path | None:
    """Returns the local path of a path or URL; None if it is not on this machine."""
    url = urlsplit(location)
    if url.scheme not in ("", "file"):
        return None
    return Path(url.path if url.scheme else location)

"""Builds DataFrames from a spec's stages. If Spark refuses a text of the spec, the error becomes a mistake with the
line of that text. Spark computes a stage once for each sink that uses it; a source's records are counted once.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from strandline.pipeline.plan.dead_letters import FAILURE, OUTPUT, dead_letter_records, failure
from strandline.pipeline.plan.decoder_options import check_options, time_pattern_mistakes
from strandline.pipeline.plan.decoding import decode_records, decoded_columns, registry_reader
from strandline.pipeline.plan.encoding import encoded_rows
from strandline.pipeline.plan.files import file_rows
from strandline.pipeline.plan.retries import (
    DELAYS_OPTION,
    RETRY_FORMAT,
    RetrySource,
    as_source_records,
    retry_options,
    without_attempt_header,
)
from strandline.pipeline.plan.retry_paths import retry_mistakes, stages_read
from strandline.pipeline.plan.single_evaluation import (
    EVALUATED_TWICE,
    evaluated_once,
    is_deterministic,
    stage_planned_twice,
    varying_rule_mistakes,
    why_result_varies,
)
from strandline.pipeline.plan.sql_texts import condition, query, record_bytes
from strandline.pipeline.plan.tables import last_row_per_key, table_records
from strandline.pipeline.spec.dead_letter_topics import retry_delays_ms
from strandline.pipeline.spec.spec import ORIGIN, TOPIC_SINK, Finish, Rule, Sink, Source, Spec, Transform
from strandline.pipeline.spec.types import quoted
from strandline.pipeline.spec.yaml_lines import Mistake, SpecError, Text, nearest
from strandline.spark.avro_columns import AVRO_OPTION, AvroTopicSource
from strandline.spark.micro_batches import ADMISSION_OPTIONS, HAS_ADMISSION_CONTROL
from strandline.spark.runtime.pyspark_logging import silence_query_errors
from strandline.spark.source import StrandlineSource

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Spark names lines of a text as `line 2, pos 7` or `line 2 pos 7`.
_LINE: Final = re.compile(r"\bline (\d+),? pos")
_SQLSTATE: Final = re.compile(r"\s*SQLSTATE: .*")
_NO_TABLE: Final = re.compile(r"TABLE_OR_VIEW_NOT_FOUND\].*?`([^`]+)`", re.DOTALL)
_ORIGIN_COLUMNS: Final = (
    "topic AS _topic",
    "partition AS _partition",
    "offset AS _offset",
    "timestamp AS _timestamp",
    "key AS _key",
    "value AS _value",
    "headers AS _headers",
)


class _StageMissingError(Exception):
    """A stage reads another one that has a mistake."""


class _AvroSource(AvroTopicSource):
    """The Avro source under a name of the pipeline's own: Spark refuses to register a name in a new session that the
    active session already has."""

    @classmethod
    def name(cls) -> str:
        return "strandline-pipeline-avro"


class _TopicSource(StrandlineSource):
    """The topic source under a name of the pipeline's own, although Spark finds the format by itself. For a format that
    it found by itself Spark would start one daemon of Python processes and another one for functions, and each of them
    would load everything that tasks need."""

    @classmethod
    def name(cls) -> str:
        return "strandline-pipeline"


class PipelinePlan:
    """The stages of a spec in a session of their own, so that their view names do not clash with others."""

    def __init__(
        self,
        spark: SparkSession,
        spec: Spec,
        *,
        commit_group: str | None = None,
        mistakes: list[Mistake] | None = None,
    ) -> None:
        """Raises SpecError for the first stage with a mistake. With `mistakes` it goes on and adds the mistakes of all
        stages to that list. Then `stages` lacks the wrong stages and all stages that read them."""
        silence_query_errors()
        self._is_trial = (
            mistakes is not None
        )  # nothing will run: no schema is registered, and a registry that is away is an error
        self._spec = spec
        self._session = spark.newSession()
        self._commit_group = commit_group
        self._dead_letters: list[DataFrame] = []
        self._sink_letters: dict[int, DataFrame] = {}  # by the line of the sink whose schema refuses rows
        self._reads: dict[str, frozenset[str]] = {}
        self._varying: dict[str, str] = {}  # by stage, the reason why its rules may have another result
        self._wrong_stages: set[str] = set()
        self.stages: dict[str, DataFrame] = {}
        self.has_nondeterministic_rules = False  # in the sense of `single_evaluation`
        found = time_pattern_mistakes(self._session, spec)
        if found:
            raise SpecError(found)
        for source in spec.sources:
            with self._collected(source.name, mistakes):
                self._add(source.name, self._source(source))
        for transform in spec.transforms:
            with self._collected(transform.name, mistakes):
                self._add(transform.name, self._transform(transform))
        if mistakes:
            return
        found = retry_mistakes(spec, self._reads) + varying_rule_mistakes(spec, self._reads, self._varying)
        if found:
            raise SpecError(found)

    @contextmanager
    def _collected(self, stage: str, mistakes: list[Mistake] | None) -> Iterator[None]:
        """Collects the mistakes of a stage. A stage that only reads a wrong stage has no mistake of its own."""
        try:
            yield
        except _StageMissingError:
            self._wrong_stages.add(stage)
        except SpecError as error:
            if mistakes is None:
                raise
            self._wrong_stages.add(stage)
            mistakes.extend(error.mistakes)

    def _add(self, name: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView(name)
        self.stages[name] = rows

    # Stages

    def _source(self, source: Source) -> DataFrame:
        where = f"sources.{source.name}"
        with self._mistakes_at(Text("", source.line), f"{where}.decode"):
            check_options(self._session, source)
            waits = not self._is_trial
            rows = decode_records(self._records(source), source, waits=waits)
            if self._spec.is_retried(source):
                rows = rows.unionByName(decode_records(self._retried(source), source, waits=waits))
        if source.is_table:
            return rows.where(f"{FAILURE} IS NULL").drop(FAILURE)
        return self._with_finish(rows, source.finish, where)

    def _records(self, source: Source) -> DataFrame:
        """Returns the columns of ORIGIN, and the decoded columns if the source has decoded values."""
        if source.files is not None:
            records = file_rows(self._session, self._spec, source)
        elif source.is_table:
            records = table_records(self._session, self._options(source)).where("key IS NOT NULL")
            records = last_row_per_key(records.selectExpr(*_ORIGIN_COLUMNS), ("_topic", "_key"))
            # If the last record of a key is a tombstone, the key is deleted.
            return records.where("_value IS NOT NULL")
        else:
            records = self._stream(source, self._options(source))
            if self._spec.is_retried(source):
                records = without_attempt_header(records)
        return _counted(records, source.name)

    def _options(self, source: Source) -> dict[str, str]:
        options = {
            "kafka.isolation.level": "read_committed",
            **{f"kafka.{name}": value for name, value in self._spec.client.items()},
            **source.options,
            "subscribe": ",".join(source.topics),
            "includeHeaders": "true",
        }
        if self._commit_group is not None and not source.is_table:
            options["commitGroup"] = self._commit_group
        return options

    def _retried(self, source: Source) -> DataFrame:
        """Returns the columns of ORIGIN for the records in retry topics that are due."""
        policy = self._spec.retry
        assert policy is not None, "the caller has checked that it is retried"
        self._session.dataSource.register(RetrySource)
        delays = retry_delays_ms(policy, source.topics)
        options = {
            **retry_options(self._options(source)),
            "subscribe": ",".join(delays),
            DELAYS_OPTION: json.dumps(delays),
        }
        rows = self._session.readStream.format(RETRY_FORMAT).options(**options).load()
        return _counted(as_source_records(rows, policy, source.topics), f"{source.name} again")

    def _stream(self, source: Source, options: dict[str, str]) -> DataFrame:
        from pyspark.sql import functions as f

        if not HAS_ADMISSION_CONTROL and any(name in options for name in ADMISSION_OPTIONS):
            text = f"sources.{source.name}: max-records-per-batch needs PySpark 4.2 or newer: remove it, or upgrade"
            raise self._error(source.line, text)
        if source.decode.registry is not None:
            # Without this check Spark would show the reason only in a traceback of another process.
            registry_reader(source.decode.registry, waits=not self._is_trial)
            options = {**options, **source.decode.registry.options()}
            self._session.dataSource.register(_TopicSource)
            rows = self._session.readStream.format(_TopicSource.name()).options(**options).load()
            return rows.select(*map(f.expr, _ORIGIN_COLUMNS), *decoded_columns())
        if source.decode.avro is None:
            self._session.dataSource.register(_TopicSource)
            rows = self._session.readStream.format(_TopicSource.name()).options(**options).load()
            return rows.selectExpr(*_ORIGIN_COLUMNS)
        # The task that reads records has them in Python already. Decoding them there saves Spark sending them to Python
        # and back.
        self._session.dataSource.register(_AvroSource)
        options = {**options, AVRO_OPTION: source.decode.avro.to_json()}
        rows = self._session.readStream.format(_AvroSource.name()).options(**options).load()
        return rows.select(*map(f.expr, _ORIGIN_COLUMNS), *decoded_columns())

    def _transform(self, transform: Transform) -> DataFrame:
        if transform.sql is not None:
            with self._mistakes_at(transform.sql, f"transforms.{transform.name}"):
                rows = query(self._session, str(transform.sql))
            self._reads[transform.name] = stages_read(rows)
        else:
            rows = self._called(transform)
            self._reads[transform.name] = frozenset(map(str, transform.inputs))
        return self._with_finish(rows, transform.finish, f"transforms.{transform.name}")

    def _called(self, transform: Transform) -> DataFrame:
        assert transform.function is not None
        from pyspark.sql import DataFrame

        function = load_function(self._spec, transform.function)
        if not self._wrong_stages.isdisjoint(transform.inputs):
            raise _StageMissingError
        with self._mistakes_at(transform.function, f"transforms.{transform.name}"):
            rows = function(*(self.stages[name] for name in transform.inputs))  # type: ignore[operator]
        if not isinstance(rows, DataFrame):
            text = f"{transform.function} must return a DataFrame, and returned {type(rows).__name__}"
            raise self._error(transform.function.line, text)
        return rows

    def _with_finish(self, rows: DataFrame, finish: Finish, where: str) -> DataFrame:
        from pyspark.sql import functions as f

        if finish.rules:
            missing = [name for name in ORIGIN if name not in rows.columns]
            if missing:
                text = f"{where}.rules need the columns {', '.join(missing)} for dead letters: select them, as o.* does"
                raise self._error(finish.rules[0].check.line, text)
            failures = [f.col(FAILURE)] if FAILURE in rows.columns else []
            wrong: list[Mistake] = []
            for rule in finish.rules:
                try:
                    with self._mistakes_at(rule.check, f"{where}.rules.{rule.name}"):
                        failures.append(_failure_of(rule, condition(rows, rule.check)))
                except SpecError as error:
                    wrong += error.mistakes
            if wrong:
                raise SpecError(wrong)
            rows = rows.withColumn(FAILURE, f.coalesce(*failures))
            why = why_result_varies(rows, finish)
            stage = where.partition(".")[2]
            if why is not None:
                self._varying[stage] = why
            if not is_deterministic(rows):
                rows = evaluated_once(rows, stage)
                self.has_nondeterministic_rules = True
        if FAILURE in rows.columns:
            self._dead_letters.append(
                dead_letter_records(rows, self._spec.dead_letters, self._spec.name, self._spec.retry)
            )
            rows = rows.where(f"{FAILURE} IS NULL").drop(FAILURE)
        if finish.watermark is not None:
            column, delay = finish.watermark
            with self._mistakes_at(column, f"{where}.watermark"):
                rows = rows.withWatermark(str(column), delay)
        if finish.dedupe:
            with self._mistakes_at(finish.dedupe[0], f"{where}.dedupe"):
                rows = rows.dropDuplicatesWithinWatermark([str(name) for name in finish.dedupe])
        return rows

    # Sinks

    def output(self) -> DataFrame | None:
        """Returns everything that goes into topics, dead letters too; None if nothing does."""
        outputs = [self.records(sink) for sink in self._spec.sinks if sink.kind == TOPIC_SINK]
        outputs += [*self._dead_letters, *self._sink_letters.values()]
        if not outputs:
            return None
        whole = outputs[0]
        for each in outputs[1:]:
            whole = whole.unionByName(each)
        twice = stage_planned_twice(whole) if self.has_nondeterministic_rules else None
        if twice is not None:
            finishes = {each.name: each.finish for each in self._spec.sources}
            finishes |= {each.name: each.finish for each in self._spec.transforms}
            raise self._error(finishes[twice].rules[0].check.line, EVALUATED_TWICE.format(stage=twice))
        return whole

    def records(self, sink: Sink) -> DataFrame:
        """Returns a stage's rows as records of the sink's topic."""
        from pyspark.sql import functions as f

        rows = self.stages[sink.stage]
        own = [name for name in rows.columns if not name.startswith("_")]
        key = value = None
        if sink.key is not None:
            with self._mistakes_at(sink.key, f"sink {sink.target}: key"):
                key = record_bytes(rows, sink.key)
        if sink.value is not None:
            with self._mistakes_at(sink.value, f"sink {sink.target}: value"):
                value = record_bytes(rows, sink.value)
        if sink.encode is not None:
            with self._mistakes_at(Text("", sink.line), f"sink {sink.target}: encode"):
                rows, letters, value = encoded_rows(rows, sink, own, is_trial=self._is_trial)
            if letters is not None:
                self._sink_letters[sink.line] = dead_letter_records(
                    letters, self._spec.dead_letters, self._spec.name, self._spec.retry
                )
        columns = {
            "topic": f.lit(sink.target),
            "key": f.lit(None).cast("binary") if key is None else key,
            "value": f.to_json(f.struct(*map(quoted, own))).cast("binary") if value is None else value,
            "headers": f.lit(None).cast(OUTPUT.rpartition("headers ")[2]),
        }
        return rows.select(*(column.alias(name) for name, column in columns.items()))

    # Mistakes

    def check_condition(self, rows: DataFrame, text: Text, where: str) -> None:
        """Raises SpecError unless a text is a condition on these rows."""
        with self._mistakes_at(text, where):
            condition(rows, text)

    def _error(self, line: int, text: str) -> SpecError:
        return SpecError([Mistake(file=self._spec.file, line=line, text=text)])

    @contextmanager
    def _mistakes_at(self, text: Text, where: str) -> Iterator[None]:
        """Turns an error that is raised inside into a mistake with the line of this text."""
        try:
            yield
        except (SpecError, _StageMissingError):
            raise
        except (
            Exception,
            SystemExit,
        ) as error:  # A function of the user's may end everything, and say nothing.
            message = str(error).strip()
            line_match = _LINE.search(message)
            line = text.line + (int(line_match[1]) - 1 if line_match else 0)
            reason = _SQLSTATE.sub("", message.splitlines()[0]) if message else ""
            if not reason or isinstance(
                error, KeyError | SystemExit
            ):  # the text of these errors is not a sentence
                reason = f"{type(error).__name__} {reason}".strip()
            table = _NO_TABLE.search(message)
            if table is not None and table[1] in self._wrong_stages:
                raise _StageMissingError from error
            if table is not None:
                reason = f"there is no stage {table[1]!r} before this{nearest(table[1], self.stages)}"
            raise self._error(line, f"{where}: {reason}") from error


def _counted(records: DataFrame, name: str) -> DataFrame:
    from pyspark.sql import functions as f

    return records.observe(name, f.count(f.lit(1)).alias("records"))


def _failure_of(rule: Rule, check: Column) -> Column:
    """Returns null if the check is true, and a failure otherwise. A check that is null has failed."""
    from pyspark.sql import functions as f

    text = f"rule {rule.name} is not met: {' '.join(rule.check.split())}"
    refused = failure(f"rule {rule.name}", text, is_retried=rule.is_retried)
    return f.when(~f.coalesce(check, f.lit(False)), refused)


def load_function(spec: Spec, reference: Text) -> object:
    """Returns the function of `module:function`, which is looked for beside the spec and on Python's path. Raises
    SpecError."""
    module, _, name = reference.partition(":")
    if str(spec.directory) not in sys.path:
        sys.path.insert(0, str(spec.directory))
    try:
        function = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:
        text = f"{reference} cannot be imported: {type(error).__name__}: {error}"
        raise SpecError([Mistake(file=spec.file, line=reference.line, text=text)]) from error
    if not callable(function):
        text = f"{reference} is not a function"
        raise SpecError([Mistake(file=spec.file, line=reference.line, text=text)])
    return function

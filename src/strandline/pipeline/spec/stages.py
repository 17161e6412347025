"""Reads sources and transforms of a spec: their input, their decoding and their rules."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from strandline.base.topics import invalid_topic_name
from strandline.client.config.config import ClientConfig
from strandline.client.errors import ConfigError
from strandline.config.java import INT_MAX
from strandline.pipeline.spec.avro_schemas import read_avro
from strandline.pipeline.spec.intervals import interval_ms
from strandline.pipeline.spec.registry import REGISTRY, REGISTRY_FORMATS, read_registry
from strandline.pipeline.spec.spec import ORIGIN, Decode, Finish, Rule, Source, Transform
from strandline.pipeline.spec.types import Column, TypeTextError, column, why_not_in
from strandline.pipeline.spec.yaml_lines import Section, Text, nearest
from strandline.spark.options import OptionError, read_options

FORMATS: Final = ("json", "avro", "protobuf", "text", "raw")
FILE_FORMATS: Final = ("json", "text", "raw", "csv", "parquet")
TOMBSTONES: Final = ("dead-letter", "drop", "keep")
# The column in which Spark puts a text that it could not read.
CORRUPT: Final = "_corrupt"
_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
# Options of the source format that a spec sets in another way, by their names in lower case.
_SET_ELSEWHERE: Final = {
    "subscribe": "set topic: in the source",
    "subscribepattern": "set topic: in the source, with a list of topics",
    "assign": "set topic: in the source; all its partitions are read",
    "includeheaders": "the column _headers is always there",
    "commitgroup": "set commit-group: in the pipeline",
    "kafka.bootstrap.servers": "set brokers: in the pipeline",
}
# Options of decoders that are time patterns, by their names in lower case.
PATTERN_OPTIONS: Final = ("timestampformat", "timestampntzformat", "dateformat")
# Options of Spark's decoders that the pipeline sets itself, by their names in lower case.
_PIPELINE_OPTIONS: Final = {
    "mode": "a value that cannot be read always becomes a dead letter",
    "columnnameofcorruptrecord": "a value that cannot be read becomes a dead letter, which has the whole value",
    "columnpruning": "every column of a line is checked, so that a bad one makes a dead letter",
}
# Options of Spark's readers of JSON, CSV and files. Spark ignores a name that it does not know, and so does the spec,
# unless the name is similar to a known one to this degree: then it is a typing error.
_SIMILAR: Final = 0.85
_SPARK_OPTIONS: Final = {
    name.lower(): name
    for name in (
        *("primitivesAsString", "prefersDecimal", "allowComments", "allowUnquotedFieldNames"),
        *("allowSingleQuotes", "allowNumericLeadingZeros", "allowNonNumericNumbers", "dropFieldIfAllNull"),
        *("allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "singleVariantColumn"),
        *("dateFormat", "timestampFormat", "timestampNTZFormat", "enableDateTimeParsingFallback"),
        *("timeZone", "locale", "encoding", "charset", "lineSep", "multiLine", "samplingRatio"),
        *("sep", "delimiter", "quote", "escape", "comment", "header", "inferSchema", "enforceSchema"),
        *("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "nullValue", "nanValue", "emptyValue"),
        *("positiveInf", "negativeInf", "maxColumns", "maxCharsPerColumn", "unescapedQuoteHandling"),
        *("charToEscapeQuoteEscaping", "mergeSchema", "datetimeRebaseMode", "int96RebaseMode"),
        *("maxFilesPerTrigger", "maxBytesPerTrigger", "maxFileAge", "latestFirst", "fileNameOnly"),
        *("cleanSource", "sourceArchiveDir", "pathGlobFilter", "modifiedBefore", "modifiedAfter"),
        *("recursiveFileLookup", "ignoreCorruptFiles", "ignoreMissingFiles", "wholetext", "basePath"),
    )
}
_TIMES: Final = ("timestamp", "timestamp_ntz")
_TEXT_COLUMNS: Final = (Column(name="value", type="string", required=False),)
_RAW_COLUMNS: Final = tuple(Column(name=name, type="binary", required=False) for name in ("key", "value"))


def read_source(name: str, line: int, section: Section) -> Source:
    """Returns a source, and reports the mistakes in it."""
    topics, topic_lines = [], []
    for each in section.texts("topic"):
        check_topic_name(section, "topic", each)
        topics.append(str(each))
        topic_lines.append(each.line)
    files = section.text("files")
    if bool(topics) == (files is not None):
        section.mistakes.add(line, f"{section.where} must have either topic or files")
    is_table = False
    tombstones = "keep"
    options: dict[str, str] = {}
    if files is None:
        is_table = section.choice("as", ("stream", "table"), "stream") == "table"
        if not is_table:
            tombstones = section.choice("tombstones", TOMBSTONES, "dead-letter")
            options = _options(section, topics)
    else:
        options = _file_options(section)
    decode = _decode(section, FORMATS if files is None else FILE_FORMATS, topics)
    finish = _finish(section, decode.columns or None)
    if is_table and (finish.rules or finish.watermark or finish.dedupe):
        section.mistakes.add(
            line,
            f"{section.where} is a table: rules, watermark and dedupe are for streams; filter a table in SQL",
        )
    section.done()
    return Source(
        name=name,
        line=line,
        topics=tuple(topics),
        topic_lines=tuple(topic_lines),
        files=None if files is None else str(files),
        is_table=is_table,
        tombstones=tombstones,
        options=options,
        decode=decode,
        finish=finish,
    )


def _options(section: Section, topics: Sequence[str]) -> dict[str, str]:
    """Returns options of the source format, from the spec's keys and from `options` as they are."""
    options = {"startingOffsets": section.choice("start", ("earliest", "latest"), "earliest")}
    records_max = section.positive("max-records-per-batch")
    if records_max is not None:
        options["maxOffsetsPerTrigger"] = str(records_max)
    for key, value in section.pairs("options").items():
        why = _SET_ELSEWHERE.get(key.lower())
        if why is not None:
            section.mistakes.add(value.line, f"{section.where}.options.{key} cannot be set here: {why}")
        options[key] = str(value)
    try:
        parsed = read_options(
            {**options, "subscribe": ",".join(topics) or "any", "kafka.bootstrap.servers": "any:1"},
            is_stream=True,
        )
        ClientConfig.consumer(parsed.consumer)
    except (OptionError, ConfigError) as error:
        section.wrong("options", f"is invalid: {error}")
    return options


def check_topic_name(section: Section, key: str, name: Text) -> None:
    """Reports a name that no topic can have."""
    why = invalid_topic_name(name)
    if why is not None:
        section.mistakes.add(name.line, f"{section.named(key)}: {why}")


def _file_options(section: Section) -> dict[str, str]:
    """Returns options of Spark's file source, from the spec's keys and from `options` as they are."""
    files_max = section.positive("max-files-per-batch", INT_MAX)
    options = {} if files_max is None else {"maxFilesPerTrigger": str(files_max)}
    return {**options, **_decode_options(section)}


def _decode_options(section: Section) -> dict[str, Text]:
    """Returns options of Spark's decoders. Their names may be in upper or lower case."""
    options = section.pairs("options")
    seen_names: dict[str, str] = {}
    for key, value in options.items():
        why = _PIPELINE_OPTIONS.get(key.lower())
        text = f"cannot be set: {why}" if why is not None else None
        if key.lower() in seen_names:
            text = f"is {seen_names[key.lower()]} once more: Spark does not distinguish them"
        elif text is None and key.lower() not in _SPARK_OPTIONS:
            close = difflib.get_close_matches(key.lower(), _SPARK_OPTIONS, n=1, cutoff=_SIMILAR)
            text = f"is not an option of Spark: did you mean {_SPARK_OPTIONS[close[0]]}?" if close else None
        elif key.lower() in PATTERN_OPTIONS and not value.strip():
            text = f"cannot be {str(value)!r}: it is empty"
        if text is not None:
            section.mistakes.add(value.line, f"{section.named('options')}.{key} {text}")
        seen_names[key.lower()] = key
    return options


def _decode(section: Section, formats: Sequence[str], topics: Sequence[str]) -> Decode:
    inner = section.section("decode")
    if inner is None:
        section.wrong("decode", f"is missing: name the format of the values, one of {', '.join(formats)}")
        return Decode(format="raw", columns=_RAW_COLUMNS, options={})
    name = inner.text("format", required=True)
    if name is not None and name not in formats:
        reason = ": that is for files" if name in FILE_FORMATS else ": that is for topics"
        inner.wrong(
            "format",
            f"cannot be {name!r}{reason if name in (*FORMATS, *FILE_FORMATS) else nearest(name, formats)}",
        )
    columns: tuple[Column, ...] = _RAW_COLUMNS if name == "raw" else _TEXT_COLUMNS
    options: dict[str, Text] = {}
    avro = registry = None
    if REGISTRY in inner and name in REGISTRY_FORMATS and topics:
        registry, columns = read_registry(inner, str(name), topics), ()
    elif name == "protobuf":
        inner.wrong("registry", "is missing: messages are decoded by schemas of a registry")
    elif name in ("json", "csv", "parquet"):
        columns = _columns(inner, str(name))
        options = _decode_options(inner)
    elif name == "avro":
        avro, columns = read_avro(inner)
        _check_names(inner, [(each.name, inner.line_at("schema")) for each in columns])
    inner.done()
    return Decode(
        format=str(name or "raw"),
        columns=columns,
        options=options,
        avro=avro,
        registry=registry,
    )


def _columns(section: Section, format: str) -> tuple[Column, ...]:
    pairs = section.pairs("schema")
    if not pairs and format != "parquet":
        section.wrong(
            "schema", "is missing: name the fields and their types, such as `amount: double not null`"
        )
    _check_names(section, [(name, text.line) for name, text in pairs.items()])
    columns = []
    for name, text in pairs.items():
        try:
            columns.append(column(name, text))
        except TypeTextError as error:
            section.mistakes.add(text.line, f"{section.where}.schema.{name}: {error}")
            continue
        why = why_not_in(format, columns[-1].type)
        if why is not None:
            section.mistakes.add(text.line, f"{section.where}.schema.{name}: {why}")
    return tuple(columns)


def _check_names(section: Section, lines: Iterable[tuple[str, int]]) -> None:
    taken: dict[str, str] = {}
    for name, line in lines:
        if name.lower() in taken:
            other = taken[name.lower()]
            section.mistakes.add(
                line,
                f"{section.where}.schema.{name}: there is {other} already, and Spark does not distinguish them",
            )
        taken[name.lower()] = name
        if name in ORIGIN or name == CORRUPT:
            section.mistakes.add(line, f"{section.where}.schema.{name}: the pipeline itself uses this name")


def read_transform(section: Section) -> Transform | None:
    """Returns a transform, and reports the mistakes in it; None if it has no name."""
    name = section.text("name", required=True)
    sql = section.text("sql")
    function = section.text("python")
    inputs: list[Text] = []
    if (sql is None) == (function is None):
        section.mistakes.add(section.line, f"{section.where} must have either sql or python")
    if function is not None:
        inputs = section.texts("inputs")
        if not inputs:
            section.wrong("inputs", "are missing: name the stages whose DataFrames the function takes")
        if not _FUNCTION.fullmatch(function):
            section.wrong("python", f"must be module:function, not {function!r}")
    finish = _finish(section, None)
    section.done()
    if name is None:
        return None
    return Transform(
        name=str(name), line=name.line, sql=sql, function=function, inputs=tuple(inputs), finish=finish
    )


def _finish(section: Section, columns: Sequence[Column] | None) -> Finish:
    """Reads rules, watermark and dedupe. `columns` are the stage's columns if they are known without Spark, otherwise
    None."""
    rules: list[Rule] = []
    for inner in section.sections("rules"):
        name, check = inner.text("name", required=True), inner.text("check", required=True)
        is_retried = inner.choice("retry", ("true", "false"), "false") == "true"
        inner.done()
        if name is not None and name in [rule.name for rule in rules]:
            inner.wrong("name", f"is {name!r}, and another rule of this stage has that name")
        if name is not None and check is not None:
            rules.append(Rule(name=str(name), check=check, is_retried=is_retried))
    watermark = None
    late = section.section("watermark")
    if late is not None:
        time, delay = late.text("column", required=True), late.text("delay", required=True)
        late.done()
        if delay is not None and interval_ms(delay) is None:
            late.wrong("delay", f"must be like 10 minutes, not {delay!r}")
        if time is not None and delay is not None:
            watermark = (time, str(delay))
            _check_column(section, time, columns, "watermark", _TIMES)
    dedupe = section.texts("dedupe")
    for each in dedupe:
        _check_column(section, each, columns, "dedupe", None)
    if dedupe and watermark is None:
        section.wrong(
            "dedupe",
            "needs a watermark in the same stage: without a watermark every key would be kept for ever",
        )
    return Finish(rules=tuple(rules), watermark=watermark, dedupe=tuple(dedupe))


def _check_column(
    section: Section, name: Text, columns: Sequence[Column] | None, what: str, types: Sequence[str] | None
) -> None:
    if columns is None or name in ORIGIN:
        return
    types_by_name = {each.name: each.type for each in columns}
    if name not in types_by_name:
        text = f"{section.where}.{what}: there is no column {name!r}{nearest(name, types_by_name)}"
        section.mistakes.add(name.line, text)
    elif types is not None and types_by_name[name] not in types:
        text = f"{section.where}.{what}: the column {name} must be a {types[0]}, and is {types_by_name[name]}"
        section.mistakes.add(name.line, text)

"""The options of `format("strandline")`: names, defaults and rules of Spark's `kafka` format.

Spark hands options over with names in lower case and values as text. An invalid value is an `OptionError` whose text
names the option and says what to do. Options that neither this format nor Spark's own knows are ignored, as Spark does,
unless they look like a typing error: then the error has the right name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.serde.registry.schemas import RegisteredSchema

LATEST: Final = -1
EARLIEST: Final = -2

KAFKA_PREFIX: Final = "kafka."
_STRATEGY_OPTIONS: Final = ("subscribe", "subscribePattern", "assign")
_READ_NAMES: Final = (
    *_STRATEGY_OPTIONS,
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "commitGroup",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "registry",
)
REGISTRY_PREFIX: Final = "registry."
_WRITE_NAMES: Final = ("topic", "includeHeaders")
# Names of Spark itself: they are no typing errors, however similar they are to one of ours.
_SPARK_NAMES: Final = ("path", "checkpointlocation", "querytimeout", "outputmode", "queryname")

# Settings that the source decides, and what to use instead.
_REFUSED_WHEN_READING: Final = {
    "auto.offset.reset": "set the option startingOffsets to earliest or latest instead",
    "key.deserializer": "keys are given as binary: cast them in the DataFrame instead",
    "value.deserializer": "values are given as binary: cast them in the DataFrame instead",
    "enable.auto.commit": "Spark keeps the offsets; commitGroup=<name> shows them to a consumer group",
    "interceptor.classes": "transform the DataFrame instead",
}
REFUSED_WHEN_WRITING: Final = {
    "key.serializer": "keys are written as they are: cast them in the DataFrame instead",
    "value.serializer": "values are written as they are: cast them in the DataFrame instead",
    "interceptor.classes": "transform the DataFrame instead",
    "transactional.id": "strandline.spark.exactly_once writes in transactions",
}
_DURATION: Final = re.compile(
    r"\s*(\d+)\s*(ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)?\s*"
)
_UNIT_SECONDS: Final = {"ms": 0.001, "mi": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_INT64_MAX: Final = (1 << 63) - 1


class OptionError(ValueError):
    """An option is invalid; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStrategy:
    """The topics or partitions that are read: one of the three fields is set."""

    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The bound at which reading begins or ends: an offset for all partitions or for each, or a time for all or for
    each."""

    offset: int | None = None  # EARLIEST or LATEST
    offsets: Mapping[TopicPartition, int] | None = None
    timestamp_ms: int | None = None
    timestamps_ms: Mapping[TopicPartition, int] | None = None


@dataclass(frozen=True, slots=True)
class RegistryValues:
    """How values are decoded: the registry's settings as JSON, and the reader's schema."""

    settings: str
    reader: RegisteredSchema
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of one read."""

    strategy: ConsumerStrategy
    start: Bound
    end: Bound
    consumer: Mapping[str, str] = field(repr=False)
    timestamp_strategy: str = "error"
    offsets_per_trigger_max: int | None = None
    offsets_per_trigger_min: int | None = None
    trigger_delay_max_seconds: float = 900.0
    partitions_min: int | None = None
    records_per_partition_max: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    commit_group: str | None = None
    poll_timeout_seconds: float = 120.0
    registry: RegistryValues | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of one write."""

    topic: str | None
    producer: Mapping[str, str] = field(repr=False)


def read_options(options_by_name: Mapping[str, str], *, is_stream: bool) -> ReadOptions:
    """Returns the options of one read. The default start differs between batch and stream, as in Spark."""
    reader = _OptionReader(options_by_name, _READ_NAMES)
    start = _bound(reader, "starting", LATEST if is_stream else EARLIEST)
    end = _bound(reader, "ending", LATEST)
    _check_bounds(reader, start, end, is_stream)
    offsets_max = reader.positive("maxOffsetsPerTrigger")
    offsets_min = reader.positive("minOffsetsPerTrigger")
    if offsets_max is not None and offsets_min is not None and offsets_max < offsets_min:
        raise OptionError(
            f"maxOffsetsPerTrigger ({offsets_max}) is less than minOffsetsPerTrigger ({offsets_min}): no batch could "
            "have both"
        )
    timestamp_strategy = reader.text("startingOffsetsByTimestampStrategy", "error").lower()
    if timestamp_strategy not in ("error", "latest"):
        raise OptionError(
            f"startingOffsetsByTimestampStrategy cannot be {timestamp_strategy!r}: use error or latest"
        )
    return ReadOptions(
        strategy=_strategy(reader),
        start=start,
        end=end,
        consumer=reader.kafka(_REFUSED_WHEN_READING),
        timestamp_strategy=timestamp_strategy,
        offsets_per_trigger_max=offsets_max,
        offsets_per_trigger_min=offsets_min,
        trigger_delay_max_seconds=_duration_seconds("maxTriggerDelay", reader.text("maxTriggerDelay", "15m")),
        partitions_min=reader.positive("minPartitions"),
        records_per_partition_max=reader.positive("maxRecordsPerPartition"),
        fail_on_data_loss=reader.flag("failOnDataLoss", True),
        include_headers=reader.flag("includeHeaders", False),
        commit_group=reader.text("commitGroup") or None,
        poll_timeout_seconds=(reader.positive("kafkaConsumer.pollTimeoutMs") or 120_000) / 1000,
    )


def write_options(options_by_name: Mapping[str, str]) -> WriteOptions:
    """Returns the options of one write."""
    reader = _OptionReader(options_by_name, _WRITE_NAMES)
    topic = reader.text("topic").strip() or None
    return WriteOptions(topic=topic, producer=reader.kafka(REFUSED_WHEN_WRITING))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions:
    """The options of a schema registry: its settings, and which schema is the reader's."""

    settings: Mapping[str, str] = field(repr=False)
    subject: str | None
    schema: str | None
    schema_type: str
    message: str | None


def registry_options(options_by_name: Mapping[str, str]) -> RegistryOptions | None:
    """Returns the options of a registry, by names that begin with `registry.`; None if there is none."""
    options = {name.lower(): str(value) for name, value in options_by_name.items()}
    url = options.get("registry", "").strip()
    if not url:
        return None
    inner = {
        name.removeprefix(REGISTRY_PREFIX): value
        for name, value in options.items()
        if name.startswith(REGISTRY_PREFIX)
    }
    subject, schema = inner.pop("subject", None), inner.pop("schema", None)
    schema_type, message = inner.pop("schematype", "AVRO"), inner.pop("message", None)
    if subject is None and schema is None:
        topics = [each.strip() for each in options.get("subscribe", "").split(",") if each.strip()]
        if len(topics) != 1:
            raise OptionError(
                "the schema of several topics is not known: name the subject with registry.subject, or give "
                "registry.schema"
            )
        subject = f"{topics[0]}-value"
    settings = json.loads(url) if url.startswith("{") else {"url": url}
    return RegistryOptions(
        settings={**settings, **inner},
        subject=subject,
        schema=schema,
        schema_type=schema_type.upper(),
        message=message,
    )


class _OptionReader:
    """Reads options by name, in lower case as Spark hands them over."""

    def __init__(self, options_by_name: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._options = {name.lower(): str(value) for name, value in options_by_name.items()}
        lower = {name.lower(): name for name in known}
        for name in self._options:
            prefixes = (KAFKA_PREFIX, REGISTRY_PREFIX, "spark.")
            if name in lower or name.startswith(prefixes) or name in _SPARK_NAMES:
                continue
            close = _similar(name, lower)
            if close is not None:
                raise OptionError(f"{name} is not an option of the format strandline: did you mean {close}?")

    def text(self, name: str, default: str = "") -> str:
        """Returns the text of an option."""
        return self._options.get(name.lower(), default)

    def has(self, name: str) -> bool:
        """True if the option is set."""
        return name.lower() in self._options

    def flag(self, name: str, default: bool) -> bool:
        """Returns the value of an option that is true or false."""
        value = self.text(name, str(default)).strip().lower()
        if value not in ("true", "false"):
            raise OptionError(f"{name} must be true or false, not {value!r}")
        return value == "true"

    def positive(self, name: str) -> int | None:
        """Returns the positive number of an option; None if it is not set."""
        if not self.has(name):
            return None
        text = self.text(name).strip()
        if not re.fullmatch(r"\d+", text) or not 0 < int(text) <= _INT64_MAX:
            raise OptionError(f"{name} must be a positive number, not {text!r}")
        return int(text)

    def kafka(self, refused: Mapping[str, str]) -> dict[str, str]:
        """Returns the settings of the client, without their prefix."""
        settings = {
            name.removeprefix(KAFKA_PREFIX): value
            for name, value in self._options.items()
            if name.startswith(KAFKA_PREFIX)
        }
        for name, instead in refused.items():
            if name in settings:
                raise OptionError(f"kafka.{name} cannot be set here: {instead}")
        if not settings.get("bootstrap.servers"):
            raise OptionError(
                "the option kafka.bootstrap.servers is missing: set it to host:port of a broker"
            )
        return settings


def _similar(name: str, known: Mapping[str, str]) -> str | None:
    import difflib  # Only an unknown name needs this import.

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
    return known[close[0]] if close else None


def _strategy(reader: _OptionReader) -> ConsumerStrategy:
    named = [name for name in _STRATEGY_OPTIONS if reader.has(name)]
    if len(named) != 1:
        verb = "may be given" if named else "must be given"
        raise OptionError(
            f"exactly one of the options {', '.join(_STRATEGY_OPTIONS)} {verb}, and there are {len(named)}"
        )
    name = named[0]
    text = reader.text(name).strip()
    if name == "subscribe":
        topics = tuple(sorted({topic.strip() for topic in text.split(",") if topic.strip()}))
        if not topics:
            raise OptionError(
                f"subscribe names no topic: it is {text!r}, and should be topics with commas between"
            )
        return ConsumerStrategy(topics=topics)
    if name == "subscribePattern":
        if not text:
            raise OptionError("subscribePattern is empty: it should be a regular expression")
        return ConsumerStrategy(pattern=_pattern(text))
    partitions_by_topic = _json_object(name, text, '{"orders":[0,1]}')
    if not all(
        isinstance(numbers, list) and all(_is_int(n) and n >= 0 for n in numbers)
        for numbers in partitions_by_topic.values()
    ):
        raise OptionError(
            f'assign should be lists of partitions by topic, such as {{"orders":[0,1]}}, not {text}'
        )
    partitions = tuple(
        sorted({TopicPartition(topic, n) for topic, numbers in partitions_by_topic.items() for n in numbers})
    )
    if not partitions:
        raise OptionError(f"assign names no partition: it is {text}")
    return ConsumerStrategy(partitions=partitions)


def _pattern(text: str) -> str:
    from strandline.spark.java_pattern import to_python_pattern  # Few queries have a pattern.

    try:
        pattern = to_python_pattern(text)
        re.compile(pattern)
    except (re.error, ValueError) as error:
        raise OptionError(f"subscribePattern {text!r} is not a regular expression: {error}") from error
    return pattern


def _bound(reader: _OptionReader, which: str, default: int) -> Bound:
    """Returns the bound that options set, in Spark's order: one time for all, times by partition, offsets."""
    if reader.has(f"{which}Timestamp"):
        text = reader.text(f"{which}Timestamp").strip()
        if not re.fullmatch(r"\d+", text):
            raise OptionError(f"{which}Timestamp should be milliseconds since 1970, not {text!r}")
        return Bound(timestamp_ms=int(text))
    name = f"{which}OffsetsByTimestamp"
    if reader.has(name):
        timestamps = by_partition(name, reader.text(name))
        if any(value < 0 for value in timestamps.values()):
            raise OptionError(f"{name} should be milliseconds since 1970, and one is negative")
        return Bound(timestamps_ms=timestamps)
    name = f"{which}Offsets"
    text = reader.text(name).strip()
    if not reader.has(name):
        return Bound(offset=default)
    if text.lower() in ("earliest", "latest"):
        return Bound(offset=EARLIEST if text.lower() == "earliest" else LATEST)
    offsets = by_partition(name, text)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise OptionError(f"{name} has an offset below -2: -1 stands for latest and -2 for earliest")
    return Bound(offsets=offsets)


def _check_bounds(reader: _OptionReader, start: Bound, end: Bound, is_stream: bool) -> None:
    if is_stream:
        for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
            if reader.has(name):
                raise OptionError(
                    f"{name} has no meaning in a stream: remove it, or read a batch with spark.read"
                )
        return
    if start.offset == LATEST or (start.offsets and LATEST in start.offsets.values()):
        raise OptionError("startingOffsets cannot be latest (-1) in a batch: nothing would be read")
    if end.offset == EARLIEST or (end.offsets and EARLIEST in end.offsets.values()):
        raise OptionError("endingOffsets cannot be earliest (-2) in a batch: nothing would be read")


def by_partition(name: str, text: str) -> dict[TopicPartition, int]:
    """Returns numbers by topic and partition, from Spark's JSON: {"orders":{"0":23,"1":-2}}."""
    example = '{"orders":{"0":23,"1":-2}}'
    parsed: dict[TopicPartition, int] = {}
    for topic, numbers in _json_object(name, text, example).items():
        if not isinstance(numbers, dict):
            raise OptionError(f"{name} should be like {example}, and {topic} has {numbers!r}")
        for partition, value in numbers.items():
            if not re.fullmatch(r"\d+", partition) or not _is_int(value):
                raise OptionError(
                    f"{name} should be like {example}, and {topic} has {partition!r}: {value!r}"
                )
            parsed[TopicPartition(topic, int(partition))] = value
    return parsed


def _json_object(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise OptionError(f"{name} should be like {example}, and {text!r} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise OptionError(f"{name} should be like {example}, not {text!r}")
    return value


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _duration_seconds(name: str, text: str) -> float:
    """Returns the seconds of one of Spark's time strings: a number and a unit, milliseconds where there is none."""
    match = _DURATION.fullmatch(text.lower())
    if match is None:
        raise OptionError(f"{name} should be like 15m or 30s, not {text!r}")
    unit = match[2] or "ms"
    short = "ms" if unit == "ms" or unit.startswith("milli") else unit[0]
    return int(match[1]) * _UNIT_SECONDS[short]

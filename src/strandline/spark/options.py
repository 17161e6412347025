"""The options of `format("strandline")`: names, defaults and rules of Spark's `kafka` format.

Spark hands options over with names in lower case and values as text. What cannot stand is an `OptionError` whose text
names the option and what to do. Options that neither this nor Spark's own format knows are left alone, as Spark does,
unless they look like a slip of the pen: then the right name is in the error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from strandline.base.ids import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2

KAFKA_PREFIX: Final = "kafka."
_STRATEGIES: Final = ("subscribe", "subscribePattern", "assign")
_READ_NAMES: Final = (
    *_STRATEGIES,
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
)
_WRITE_NAMES: Final = ("topic", "includeHeaders")
# Names of Spark itself that look like none of ours, whatever the similarity.
_SPARKS_OWN: Final = ("path", "checkpointlocation", "querytimeout", "outputmode", "queryname")

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
    """An option that cannot stand; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What is read: one of three is there."""

    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Where reading begins or ends: an offset for all partitions or for each, or a time for all or for each."""

    offset: int | None = None  # EARLIEST or LATEST
    offsets: Mapping[TopicPartition, int] | None = None
    timestamp_ms: int | None = None
    timestamps_ms: Mapping[TopicPartition, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    subscription: Subscription
    start: Bound
    end: Bound
    consumer: Mapping[str, str] = field(repr=False)
    when_no_later_record: str = "error"
    offsets_per_trigger_max: int | None = None
    offsets_per_trigger_min: int | None = None
    trigger_delay_max_seconds: float = 900.0
    partitions_min: int | None = None
    records_per_partition_max: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    commit_group: str | None = None
    poll_timeout_seconds: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    topic: str | None
    producer: Mapping[str, str] = field(repr=False)


def read_options(given: Mapping[str, str], *, is_stream: bool) -> ReadOptions:
    """The options of one read; the defaults of where to begin differ between batch and stream, as in Spark."""
    options = _Given(given, _READ_NAMES)
    start = _bound(options, "starting", LATEST if is_stream else EARLIEST)
    end = _bound(options, "ending", LATEST)
    _check_bounds(options, start, end, is_stream)
    most, least = options.positive("maxOffsetsPerTrigger"), options.positive("minOffsetsPerTrigger")
    if most is not None and least is not None and most < least:
        raise OptionError(
            f"maxOffsetsPerTrigger ({most}) is less than minOffsetsPerTrigger ({least}): no batch could have both"
        )
    strategy = options.text("startingOffsetsByTimestampStrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise OptionError(f"startingOffsetsByTimestampStrategy cannot be {strategy!r}: use error or latest")
    return ReadOptions(
        subscription=_subscription(options),
        start=start,
        end=end,
        consumer=options.kafka(_REFUSED_WHEN_READING),
        when_no_later_record=strategy,
        offsets_per_trigger_max=most,
        offsets_per_trigger_min=least,
        trigger_delay_max_seconds=_duration_seconds(
            "maxTriggerDelay", options.text("maxTriggerDelay", "15m")
        ),
        partitions_min=options.positive("minPartitions"),
        records_per_partition_max=options.positive("maxRecordsPerPartition"),
        fail_on_data_loss=options.flag("failOnDataLoss", True),
        include_headers=options.flag("includeHeaders", False),
        commit_group=options.text("commitGroup") or None,
        poll_timeout_seconds=(options.positive("kafkaConsumer.pollTimeoutMs") or 120_000) / 1000,
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    options = _Given(given, _WRITE_NAMES)
    topic = options.text("topic").strip() or None
    return WriteOptions(topic=topic, producer=options.kafka(REFUSED_WHEN_WRITING))


class _Given:
    """Options by name in lower case, as Spark gives them."""

    def __init__(self, given: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._given = {name.lower(): str(value) for name, value in given.items()}
        lower = {name.lower(): name for name in known}
        for name in self._given:
            if name in lower or name.startswith((KAFKA_PREFIX, "spark.")) or name in _SPARKS_OWN:
                continue
            close = _similar(name, lower)
            if close is not None:
                raise OptionError(f"{name} is no option of the format strandline: did you mean {close}?")

    def text(self, name: str, default: str = "") -> str:
        return self._given.get(name.lower(), default)

    def has(self, name: str) -> bool:
        return name.lower() in self._given

    def flag(self, name: str, default: bool) -> bool:
        value = self.text(name, str(default)).strip().lower()
        if value not in ("true", "false"):
            raise OptionError(f"{name} must be true or false, not {value!r}")
        return value == "true"

    def positive(self, name: str) -> int | None:
        if not self.has(name):
            return None
        text = self.text(name).strip()
        if not re.fullmatch(r"\d+", text) or not 0 < int(text) <= _INT64_MAX:
            raise OptionError(f"{name} must be a positive number, not {text!r}")
        return int(text)

    def kafka(self, refused: Mapping[str, str]) -> dict[str, str]:
        """The settings of the client, without their prefix."""
        settings = {
            name.removeprefix(KAFKA_PREFIX): value
            for name, value in self._given.items()
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
    import difflib  # Only a name that nobody knows needs it.

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
    return known[close[0]] if close else None


def _subscription(options: _Given) -> Subscription:
    named = [name for name in _STRATEGIES if options.has(name)]
    if len(named) != 1:
        verb = "may be given" if named else "must be given"
        raise OptionError(
            f"exactly one of the options {', '.join(_STRATEGIES)} {verb}, and there are {len(named)}"
        )
    name = named[0]
    text = options.text(name).strip()
    if name == "subscribe":
        topics = tuple(sorted({topic.strip() for topic in text.split(",") if topic.strip()}))
        if not topics:
            raise OptionError(
                f"subscribe names no topic: it is {text!r}, and should be topics with commas between"
            )
        return Subscription(topics=topics)
    if name == "subscribePattern":
        if not text:
            raise OptionError("subscribePattern is empty: it should be a regular expression")
        return Subscription(pattern=_pattern(text))
    found = _json_object(name, text, '{"orders":[0,1]}')
    if not all(
        isinstance(numbers, list) and all(_is_int(n) and n >= 0 for n in numbers)
        for numbers in found.values()
    ):
        raise OptionError(
            f'assign should be lists of partitions by topic, such as {{"orders":[0,1]}}, not {text}'
        )
    partitions = tuple(
        sorted({TopicPartition(topic, n) for topic, numbers in found.items() for n in numbers})
    )
    if not partitions:
        raise OptionError(f"assign names no partition: it is {text}")
    return Subscription(partitions=partitions)


def _pattern(text: str) -> str:
    from strandline.spark.java_pattern import python_pattern  # Few queries have one.

    try:
        found = python_pattern(text)
        re.compile(found)
    except (re.error, ValueError) as error:
        raise OptionError(f"subscribePattern {text!r} is no regular expression: {error}") from error
    return found


def _bound(options: _Given, which: str, default: int) -> Bound:
    """In Spark's order: one time for all, times by partition, offsets."""
    if options.has(f"{which}Timestamp"):
        text = options.text(f"{which}Timestamp").strip()
        if not re.fullmatch(r"\d+", text):
            raise OptionError(f"{which}Timestamp should be milliseconds since 1970, not {text!r}")
        return Bound(timestamp_ms=int(text))
    name = f"{which}OffsetsByTimestamp"
    if options.has(name):
        found = by_partition(name, options.text(name))
        if any(value < 0 for value in found.values()):
            raise OptionError(f"{name} should be milliseconds since 1970, and one is negative")
        return Bound(timestamps_ms=found)
    name = f"{which}Offsets"
    text = options.text(name).strip()
    if not options.has(name):
        return Bound(offset=default)
    if text.lower() in ("earliest", "latest"):
        return Bound(offset=EARLIEST if text.lower() == "earliest" else LATEST)
    offsets = by_partition(name, text)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise OptionError(f"{name} has an offset below -2: -1 stands for latest and -2 for earliest")
    return Bound(offsets=offsets)


def _check_bounds(options: _Given, start: Bound, end: Bound, is_stream: bool) -> None:
    if is_stream:
        for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
            if options.has(name):
                raise OptionError(
                    f"{name} has no meaning in a stream: remove it, or read a batch with spark.read"
                )
        return
    if start.offset == LATEST or (start.offsets and LATEST in start.offsets.values()):
        raise OptionError("startingOffsets cannot be latest (-1) in a batch: nothing would be read")
    if end.offset == EARLIEST or (end.offsets and EARLIEST in end.offsets.values()):
        raise OptionError("endingOffsets cannot be earliest (-2) in a batch: nothing would be read")


def by_partition(name: str, text: str) -> dict[TopicPartition, int]:
    """Numbers by topic and partition, from Spark's JSON: {"orders":{"0":23,"1":-2}}."""
    example = '{"orders":{"0":23,"1":-2}}'
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _json_object(name, text, example).items():
        if not isinstance(numbers, dict):
            raise OptionError(f"{name} should be like {example}, and {topic} has {numbers!r}")
        for partition, value in numbers.items():
            if not re.fullmatch(r"\d+", partition) or not _is_int(value):
                raise OptionError(
                    f"{name} should be like {example}, and {topic} has {partition!r}: {value!r}"
                )
            found[TopicPartition(topic, int(partition))] = value
    return found


def _json_object(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise OptionError(f"{name} should be like {example}, and {text!r} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise OptionError(f"{name} should be like {example}, not {text!r}")
    return found


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _duration_seconds(name: str, text: str) -> float:
    """Spark's time strings: a number and a unit, milliseconds where there is none."""
    found = _DURATION.fullmatch(text.lower())
    if found is None:
        raise OptionError(f"{name} should be like 15m or 30s, not {text!r}")
    unit = found[2] or "ms"
    short = "ms" if unit == "ms" or unit.startswith("milli") else unit[0]
    return int(found[1]) * _UNIT_SECONDS[short]

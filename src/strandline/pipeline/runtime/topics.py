"""The brokers and topics of a pipeline: checks that brokers respond and topics exist, and creates topics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.admin.configs import ConfigResource
from strandline.client.admin.topics import EARLIEST, LATEST, NewTopic
from strandline.client.deadletter.letters import HEADERS_BYTES_MAX
from strandline.client.errors import ConnectionFailedError, KafkaError, KafkaTimeoutError, TopicExistsError
from strandline.client.sync import Admin
from strandline.pipeline.spec.dead_letter_topics import dead_letter_topics, retry_delays_ms, retry_topics
from strandline.pipeline.spec.spec import TOPIC_SINK, Sink, Source, Spec
from strandline.pipeline.spec.yaml_lines import Mistake, SpecError, near

# A person waits for the result: unless the spec says otherwise, brokers have less time here than in a running pipeline.
_API_TIMEOUT: Final = "default.api.timeout.ms"
_API_TIMEOUT_MS: Final = "10000"
# A week, as Kafka's default retention: a pipeline may be stopped for that time without losing the records of its retry
# topics.
_RETENTION_AFTER_DELAY_MS: Final = 7 * 86_400_000


def check_topics(spec: Spec) -> None:
    """Raises SpecError where brokers do not respond, or where topics are missing that the pipeline will not create
    itself."""
    try:
        with Admin({_API_TIMEOUT: _API_TIMEOUT_MS, **spec.client}) as admin:
            existing = admin.list_topics()
            refused = [_why_refused(admin, existing, sink) for sink in _topic_sinks(spec)]
    except KafkaError as error:
        text = f"brokers: {spec.brokers} does not respond: {error}"
        raise SpecError([Mistake(file=spec.file, line=spec.brokers_line, text=text)]) from error
    missing = [
        (
            line,
            f"sources.{source.name}: topic {topic} does not exist{near(topic, existing) or ': create it first'}",
        )
        for source, topic, line in _source_topics(spec)
        if topic not in existing
    ]
    missing += [
        (
            sink.target_line,
            (
                f"topic {sink.target} does not exist{near(sink.target, existing)}"
                ": create it, or set `partitions: N` and the pipeline creates it"
            ),
        )
        for sink in _topic_sinks(spec)
        if sink.target not in existing and sink.partitions is None
    ]
    missing += [each for each in refused if each is not None]
    if missing:
        raise SpecError([Mistake(file=spec.file, line=line, text=text) for line, text in missing])


def expiring_records(spec: Spec) -> list[Mistake]:
    """Returns a warning for each source topic that has records older than its retention: brokers delete them soon,
    without telling anybody."""
    warnings = []
    with Admin({_API_TIMEOUT: _API_TIMEOUT_MS, **spec.client}) as admin:
        for source, topic, line in _source_topics(spec):
            count = _expired_count(admin, topic)
            if count:
                text = (
                    f"sources.{source.name}: {count} records of topic {topic} are older than its retention.ms, and "
                    "brokers delete them soon: raise retention.ms to keep them"
                )
                warnings.append(Mistake(file=spec.file, line=line, text=text))
    return warnings


def _expired_count(admin: Any, topic: str) -> int:
    resource = ConfigResource.topic(topic)
    configs = admin.describe_configs([resource])[resource]
    retention_ms = int(configs["retention.ms"].value or -1)
    if retention_ms < 0 or "delete" not in (configs["cleanup.policy"].value or ""):
        return 0
    description = admin.describe_topics([topic])[topic]
    partitions = [TopicPartition(topic, each.partition) for each in description.partitions]
    kept_from_ms = int(time.time() * 1000) - retention_ms
    first = admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
    kept = admin.list_offsets(dict.fromkeys(partitions, kept_from_ms))
    ends = admin.list_offsets(dict.fromkeys(partitions, LATEST))
    return sum(
        (kept[each].offset if kept[each].offset >= 0 else ends[each].offset) - first[each].offset
        for each in partitions
    )


def _why_refused(admin: Any, existing: Iterable[str], sink: Sink) -> tuple[int, str] | None:
    """Returns the error with which brokers would refuse to create the topic of a sink; None if they would create it.
    Nothing is created."""
    if sink.target in existing or sink.partitions is None:
        return None
    new_topic = NewTopic(name=sink.target, partitions=sink.partitions, configs=dict(sink.configs))
    try:
        admin.create_topics([new_topic], validate_only=True)
    except TopicExistsError:
        return None
    except (ConnectionFailedError, KafkaTimeoutError):
        raise
    except KafkaError as error:
        return sink.line, f"topic {sink.target} cannot be created: {error}"
    return None


def create_topics(spec: Spec) -> list[str]:
    """Creates the topics of sinks that have `partitions`, and those of dead letters and retries, and returns the new
    ones. Raises SpecError if brokers refuse the configs of a sink's topic."""
    with Admin(dict(spec.client)) as admin:
        existing = set(admin.list_topics())
        created = []
        for sink in _topic_sinks(spec):
            if sink.target not in existing and sink.partitions is not None:
                try:
                    _create(admin, sink.target, sink.partitions, dict(sink.configs))
                except KafkaError as error:
                    text = f"topic {sink.target} cannot be created: {error}"
                    raise SpecError([Mistake(file=spec.file, line=sink.line, text=text)]) from error
                created.append(sink.target)
        for name, sources in dead_letter_topics(spec).items():
            if name not in existing:
                _create_dead_letter_topic(admin, name, sources, {"retention.ms": "-1"})
                created.append(name)
        for name, like in retry_topics(spec).items():
            if name not in existing:
                assert spec.retry is not None
                retention_ms = retry_delays_ms(spec.retry, (like,))[name] + _RETENTION_AFTER_DELAY_MS
                _create_dead_letter_topic(admin, name, [like], {"retention.ms": str(retention_ms)})
                created.append(name)
    return created


def _source_topics(spec: Spec) -> Iterator[tuple[Source, str, int]]:
    """Returns each topic that is read, with its line."""
    for source in spec.sources:
        for topic, line in zip(source.topics, source.topic_lines, strict=True):
            yield source, topic, line


def _topic_sinks(spec: Spec) -> list[Sink]:
    return [sink for sink in spec.sinks if sink.kind == TOPIC_SINK]


def _create_dead_letter_topic(admin: Any, name: str, sources: Sequence[str], more: Mapping[str, str]) -> None:
    """Creates a topic that accepts records as large as its sources do, plus the pipeline's headers. A dead-letter topic
    keeps its records until somebody deletes them: retention must not remove records that could not be handled. The
    topic is not compacted, whatever the cluster's default is."""
    partitions, configs = 1, {"cleanup.policy": "delete", **more}
    if sources:
        partitions = len(admin.describe_topics(sources[:1])[sources[0]].partitions)
        configs_by_topic = admin.describe_configs(
            [ConfigResource.topic(each) for each in dict.fromkeys(sources)]
        )
        size = max(int(each["max.message.bytes"].value or 0) for each in configs_by_topic.values())
        configs["max.message.bytes"] = str(size + HEADERS_BYTES_MAX)
    _create(admin, name, partitions, configs)


def _create(admin: Any, name: str, partitions: int, configs: dict[str, str]) -> None:
    with suppress(TopicExistsError):  # another process was quicker
        admin.create_topic(name, partitions=partitions, configs=configs)

"""What a pipeline needs of the brokers: that they answer, and that its topics are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from strandline.client.admin.configs import ConfigResource
from strandline.client.admin.topics import NewTopic
from strandline.client.deadletter.letters import HEADERS_BYTES_MAX
from strandline.client.errors import ConnectionFailedError, KafkaError, KafkaTimeoutError, TopicExistsError
from strandline.client.sync import Admin
from strandline.pipeline.spec.dead_letter_topics import dead_letter_topics, retry_delays_ms, retry_topics
from strandline.pipeline.spec.spec import TOPIC_SINK, Sink, Source, Spec
from strandline.pipeline.spec.yaml_lines import Mistake, SpecError

# Somebody waits: unless the spec says otherwise, brokers have less time here than a running pipeline gives them.
_TIMEOUT: Final = "default.api.timeout.ms"
_ANSWER_MS_MAX: Final = "10000"
# A week, as Kafka keeps records of other topics: so long a pipeline may be away when records to try again are due.
_KEPT_BEHIND_DELAY_MS: Final = 7 * 86_400_000


def check_topics(spec: Spec) -> None:
    """Raises SpecError where brokers do not answer or topics are missing that the pipeline will not make itself."""
    try:
        with Admin({_TIMEOUT: _ANSWER_MS_MAX, **spec.client}) as admin:
            existing = admin.list_topics()
            refused = [_why_refused(admin, existing, sink) for sink in _topic_sinks(spec)]
    except KafkaError as error:
        text = f"brokers: {spec.brokers} does not answer: {error}"
        raise SpecError([Mistake(file=spec.file, line=spec.brokers_line, text=text)]) from error
    missing = [
        (source.line, f"sources.{source.name}: topic {topic} does not exist: create it first")
        for source, topic in _source_topics(spec)
        if topic not in existing
    ]
    missing += [
        (
            sink.line,
            f"topic {sink.target} does not exist: create it, or say `partitions: N` and the pipeline does",
        )
        for sink in _topic_sinks(spec)
        if sink.target not in existing and sink.partitions is None
    ]
    missing += [each for each in refused if each is not None]
    if missing:
        raise SpecError([Mistake(file=spec.file, line=line, text=text) for line, text in missing])


def _why_refused(admin: Any, existing: Iterable[str], sink: Sink) -> tuple[int, str] | None:
    """What brokers would say of the topic that a sink wants to have; nothing is created."""
    if sink.target in existing or sink.partitions is None:
        return None
    wanted = NewTopic(name=sink.target, partitions=sink.partitions, configs=dict(sink.configs))
    try:
        admin.create_topics([wanted], validate_only=True)
    except TopicExistsError:
        return None
    except (ConnectionFailedError, KafkaTimeoutError):
        raise
    except KafkaError as error:
        return sink.line, f"topic {sink.target} cannot be created: {error}"
    return None


def create_topics(spec: Spec) -> list[str]:
    """Makes the sinks' topics that say how many partitions they want, and those of dead letters; the new ones. Raises
    SpecError where brokers refuse what a sink says of its topic."""
    with Admin(dict(spec.client)) as admin:
        existing = set(admin.list_topics())
        made = []
        for sink in _topic_sinks(spec):
            if sink.target not in existing and sink.partitions is not None:
                try:
                    _create(admin, sink.target, sink.partitions, dict(sink.configs))
                except KafkaError as error:
                    text = f"topic {sink.target} cannot be created: {error}"
                    raise SpecError([Mistake(file=spec.file, line=sink.line, text=text)]) from error
                made.append(sink.target)
        for name, sources in dead_letter_topics(spec).items():
            if name not in existing:
                _create_letters(admin, name, sources, {"retention.ms": "-1"})
                made.append(name)
        for name, like in retry_topics(spec).items():
            if name not in existing:
                assert spec.retry is not None
                kept_ms = retry_delays_ms(spec.retry, (like,))[name] + _KEPT_BEHIND_DELAY_MS
                _create_letters(admin, name, [like], {"retention.ms": str(kept_ms)})
                made.append(name)
    return made


def _source_topics(spec: Spec) -> Iterator[tuple[Source, str]]:
    for source in spec.sources:
        for topic in source.topics:
            yield source, topic


def _topic_sinks(spec: Spec) -> list[Sink]:
    return [sink for sink in spec.sinks if sink.kind == TOPIC_SINK]


def _create_letters(admin: Any, name: str, sources: Sequence[str], more: Mapping[str, str]) -> None:
    """It takes records as large as each of its sources, with our headers on top. One of dead letters keeps them until
    somebody deletes them: what nobody could handle must not vanish because of retention. None takes the place of
    another that has its key, whatever the cluster's default is."""
    partitions, configs = 1, {"cleanup.policy": "delete", **more}
    if sources:
        partitions = len(admin.describe_topics(sources[:1])[sources[0]].partitions)
        found = admin.describe_configs([ConfigResource.topic(each) for each in dict.fromkeys(sources)])
        size = max(int(each["max.message.bytes"].value or 0) for each in found.values())
        configs["max.message.bytes"] = str(size + HEADERS_BYTES_MAX)
    _create(admin, name, partitions, configs)


def _create(admin: Any, name: str, partitions: int, configs: dict[str, str]) -> None:
    with suppress(TopicExistsError):  # somebody else was quicker
        admin.create_topic(name, partitions=partitions, configs=configs)

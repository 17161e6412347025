"""Reads a spec from YAML: keys, types, and references between stages. It needs neither Spark nor brokers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from strandline.base.topics import INTERNAL_TOPICS
from strandline.client.config.config import ClientConfig
from strandline.client.config.producer_keys import PRODUCER_KEYS
from strandline.client.config.shared_keys import SECURITY_PREFIXES
from strandline.client.deadletter.letters import REQUEST_BYTES_MAX
from strandline.client.errors import ConfigError
from strandline.config.java import INT_MAX
from strandline.pipeline.spec.dead_letter_topics import dead_letter_topics, retry_topics
from strandline.pipeline.spec.intervals import interval_ms
from strandline.pipeline.spec.registry import REGISTRY_FORMATS, RegistryUse, read_registry
from strandline.pipeline.spec.retry import read_retry
from strandline.pipeline.spec.spark_settings import read_spark
from strandline.pipeline.spec.spec import (
    TABLE_SINK,
    TOPIC_SINK,
    Sink,
    Source,
    Spec,
    Transform,
    Trigger,
    local_path,
)
from strandline.pipeline.spec.stages import check_topic_name, read_source, read_transform
from strandline.pipeline.spec.yaml_lines import Mistakes, Section, SpecError, Text, nearest, parse, substitute
from strandline.spark.sink.commit_markers import MARKER_TOPIC
from strandline.spark.sink.settings import check_transactional, why_sink_refuses

# Client settings that a spec sets in another way.
_SET_ELSEWHERE: Final = {
    "bootstrap.servers": "set brokers: in the spec",
    "transactional.id": "each pipeline's checkpoint has its own",
    "transaction.timeout.ms": "it is ten minutes; make batches smaller with max-records-per-batch",
}
SINK_KINDS: Final = (TOPIC_SINK, TABLE_SINK, "parquet", "console", "delta", "iceberg")
MODES: Final = ("append", "update")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EVERY: Final = re.compile(r"every\s+(.+)")
_DIRECTORY_SINKS: Final = (TABLE_SINK, "parquet", "delta")


def load(path: str | Path, environment: Mapping[str, str] | None = None) -> Spec:
    """Returns the spec in a file. `${NAME}` and `${NAME:-otherwise}` are taken from the environment. Raises
    SpecError."""
    mistakes = Mistakes(str(path))
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        mistakes.add(1, f"the file cannot be read: {error}")
        raise SpecError(mistakes.noted) from error
    root = parse(text, mistakes)
    if root is None:
        if not mistakes.noted:
            mistakes.add(1, "the file is empty")
        raise SpecError(mistakes.noted)
    substitute(root, os.environ if environment is None else environment, mistakes)
    spec = _read(Section(root, "", mistakes), str(path))
    mistakes.check()
    assert spec is not None, "without a mistake there is a spec"
    _check_directories(spec, mistakes)
    _check_dead_letter_topics(spec, mistakes)
    mistakes.check()
    return spec


def _read(root: Section, file: str) -> Spec | None:
    name = root.text("pipeline", required=True)
    brokers = root.text("brokers", required=True)
    client: dict[str, str] = {}
    producer: dict[str, str] = {}
    if brokers is not None:
        client = _settings(root, "client", {"bootstrap.servers": str(brokers)}, ClientConfig.admin)
        known = {key.name for key in PRODUCER_KEYS}
        shared = {
            name: value
            for name, value in client.items()
            if name in known or name.startswith(SECURITY_PREFIXES)
        }
        # A dead letter is as large as its record, so the producer allows any size that the topic allows.
        producer = {
            "max.request.size": str(REQUEST_BYTES_MAX),
            **_settings(root, "producer", shared, check_transactional),
        }
    checkpoint = root.text("checkpoint", required=True)
    why = None if checkpoint is None else _why_no_checkpoint(file, checkpoint)
    if why is not None:
        root.wrong("checkpoint", why)
    master, settings = read_spark(root)
    sources = _sources(root)
    stages = {source.name for source in sources}
    transforms = _transforms(root, stages)
    sinks = [_sink(section, stages) for section in root.sections("sinks")]
    if "sinks" not in root or (not sinks and not root.mistakes.noted):
        root.wrong("sinks", "are missing: without one nothing would be written")
    if any(sink is not None and sink.encode is not None for sink in sinks):
        sources = [replace(source, is_encoded=True) for source in sources]
    dead_letters = root.text("dead-letters")
    if dead_letters is not None:
        check_topic_name(root, "dead-letters", dead_letters)
    _check_written_topics(root, sources, sinks, dead_letters)
    for source in sources:
        if source.files is not None and source.can_fail(transforms) and dead_letters is None:
            root.mistakes.add(
                source.line,
                f"sources.{source.name} reads files, so no dead-letter topic follows from a source topic's name: set "
                "dead-letters: TOPIC in the spec",
            )
    retry = read_retry(root, name, sources, transforms)
    mode = root.choice("mode", MODES, "append")
    trigger = _trigger(root)
    commit_group = root.text("commit-group")
    root.done()
    if name is None or brokers is None or checkpoint is None:
        return None
    return Spec(
        file=file,
        name=str(name),
        brokers_line=brokers.line,
        client=client,
        producer=producer,
        checkpoint=str(checkpoint),
        checkpoint_line=checkpoint.line,
        commit_group=_plain(commit_group),
        dead_letters=_plain(dead_letters),
        retry=retry,
        mode=mode,
        trigger=trigger,
        master=master,
        spark=settings,
        sources=tuple(sources),
        transforms=tuple(transforms),
        sinks=tuple(sink for sink in sinks if sink is not None),
    )


def _settings(
    root: Section, name: str, fixed: Mapping[str, str], config: Callable[[Mapping[str, str]], Any]
) -> dict[str, str]:
    """Returns client settings by Kafka's names, together with the `fixed` ones. The client's own checks judge them."""
    pairs = root.pairs(name)
    for setting, text in pairs.items():
        why = _SET_ELSEWHERE.get(setting) or (why_sink_refuses(setting, text) if name == "producer" else None)
        if why is not None:
            root.mistakes.add(text.line, f"{name}.{setting} cannot be set: {why}")
            return dict(fixed)
    settings = {**{setting: str(text) for setting, text in pairs.items()}, **fixed}
    try:
        config(settings)
    except ConfigError as error:
        line = pairs[error.key].line if error.key in pairs else root.line_at("brokers")
        root.mistakes.add(line, f"{name}: {error}")
    return settings


def _plain(text: Text | None) -> str | None:
    return None if text is None else str(text)


def _why_no_checkpoint(file: str, checkpoint: str) -> str | None:
    """Returns the reason why a directory cannot be the checkpoint; None if it can. The pipeline's lock must be a file
    on this machine."""
    path = local_path(checkpoint)
    if path is None:
        return f"must be a directory on this machine, and {checkpoint} is not: it has the pipeline's lock and state"
    path = Path(file).resolve().parent / path
    taken = next((each for each in (path, *path.parents) if each.is_file()), None)
    return None if taken is None else f"cannot be {checkpoint}: {taken.name} is a file and not a directory"


def _trigger(root: Section) -> Trigger:
    text = root.text("trigger")
    if text is None or text == "available-now":
        return Trigger()
    if text == "once":
        return Trigger(is_once=True)
    every = _EVERY.fullmatch(text)
    every_ms = None if every is None else interval_ms(every[1])
    if every is None or every_ms is None:
        root.wrong("trigger", f"cannot be {text!r}: use available-now, once, or every N seconds")
        return Trigger()
    if every_ms == 0:
        root.wrong(
            "trigger", f"cannot be {text!r}: write every 1 millisecond to have one batch follow another"
        )
    return Trigger(every=every[1])


def _sources(root: Section) -> list[Source]:
    section = root.section("sources")
    if section is None:
        root.wrong("sources", "are missing: without one nothing would be read")
        return []
    sources: list[Source] = []
    for name in section.names:
        inner = section.section(name)
        _check_name(section, name, set())
        if name.lower() in {each.name.lower() for each in sources}:
            text = (
                f"sources.{name}: there is a source of that name already, and Spark does not distinguish them"
            )
            section.mistakes.add(section.line_at(name), text)
        if inner is not None:
            sources.append(read_source(name, section.line_at(name), inner))
    return sources


def _transforms(root: Section, stages: set[str]) -> list[Transform]:
    """Returns the transforms, and adds their names to `stages`."""
    transforms = []
    for section in root.sections("transforms"):
        transform = read_transform(section)
        if transform is None:
            continue
        _check_name(section, transform.name, stages)
        for stage in transform.inputs:
            _check_stage(section, stage, stages)
        stages.add(transform.name)
        transforms.append(transform)
    return transforms


def _check_name(section: Section, name: str, taken: set[str]) -> None:
    if not _NAME.fullmatch(name):
        text = f"{name!r} cannot be a stage's name: SQL needs letters, digits and underscores"
        section.mistakes.add(section.line_at(name), text)
    elif name.lower() in {each.lower() for each in taken}:  # Spark does not distinguish them
        section.wrong("name", f"is {name!r}, and a stage of that name exists already")


def _check_stage(section: Section, stage: Text, stages: set[str]) -> None:
    if stage not in stages:
        known = nearest(stage, sorted(stages))
        section.mistakes.add(stage.line, f"{section.where}: there is no stage {stage!r} before this{known}")


def _check_written_topics(
    root: Section, sources: Sequence[Source], sinks: Sequence[Sink | None], dead_letters: Text | None
) -> None:
    """Reports sinks into topics that brokers or sinks own, and into topics that the pipeline reads: it would read its
    own output for ever."""
    read = {topic: source.name for source in sources if not source.is_table for topic in source.topics}
    written = [
        (sink.target, sink.line, "the sink") for sink in sinks if sink is not None and sink.kind == TOPIC_SINK
    ]
    if dead_letters is not None:
        written.append((dead_letters, dead_letters.line, "dead-letters"))
    for topic, line, who in written:
        if topic in INTERNAL_TOPICS or topic == MARKER_TOPIC:
            root.mistakes.add(
                line, f"{who}: {topic} is an internal topic of brokers or sinks: choose another topic"
            )
        elif topic in read:
            text = f"{who}: {topic} is read by sources.{read[topic]}, so that the pipeline would read its own output"
            root.mistakes.add(line, f"{text}, and write it again, without end: choose another topic")


def _check_dead_letter_topics(spec: Spec, mistakes: Mistakes) -> None:
    """Reports other uses of dead-letter and retry topics: `dlq redrive` takes each record for a dead letter, and the
    pipeline reads a retry topic's records as records of its source."""
    dead_letters = {spec.dead_letters, *dead_letter_topics(spec)}
    retries = retry_topics(spec)
    for sink in spec.sinks:
        if sink.kind == TOPIC_SINK and (sink.target in dead_letters or sink.target in retries):
            what = "dead letters" if sink.target in dead_letters else "records to try again"
            text = f"the sink: {sink.target} is where the pipeline puts {what}, and nothing else may be written to it"
            mistakes.add(sink.line, f"{text}: choose another topic")
    for source in spec.sources:
        for topic in source.topics:
            if topic in retries:
                text = f"sources.{source.name}: {topic} is read by the pipeline itself, which tries its records again"
                mistakes.add(source.line, f"{text}: choose another topic")


def _check_directories(spec: Spec, mistakes: Mistakes) -> None:
    """Reports directories with two writers: each writer deletes files in its directory, and takes every file there for
    its own."""
    taken = [("checkpoint", spec.checkpoint)]
    for sink in spec.sinks:
        if sink.kind not in _DIRECTORY_SINKS:
            continue
        mine = _parts(spec.located(sink.target))
        for kind, directory in taken:
            other = _parts(spec.located(directory))
            shared = min(len(mine), len(other))
            is_one_lake = (kind, sink.kind, mine) == (
                "delta",
                "delta",
                other,
            )  # this format allows several writers
            if mine[:shared] == other[:shared] and not is_one_lake:
                text = f"{sink.kind} {sink.target} and {kind} {directory} share a directory"
                mistakes.add(sink.line, f"{text}: each needs a directory of its own, not inside another's")
        taken.append((sink.kind, sink.target))


def _parts(location: str) -> tuple[str, ...]:
    """Returns the parts of a URL or path, for comparisons: the parts of a path inside a directory begin with those of
    the directory."""
    path = local_path(location)
    if path is not None:
        return ("", *path.resolve().parts)
    url = urlsplit(location)
    return (f"{url.scheme}://{url.netloc}", *Path("/", url.path.strip("/")).parts)


def _sink(section: Section, stages: set[str]) -> Sink | None:
    stage = section.text("from", required=True)
    if stage is not None:
        _check_stage(section, stage, stages)
    kinds = [kind for kind in SINK_KINDS if kind in section]
    if len(kinds) != 1:
        section.mistakes.add(
            section.line,
            f"{section.where} must have exactly one of {', '.join(SINK_KINDS)}, and has {len(kinds)}",
        )
    kind = kinds[0] if kinds else TOPIC_SINK
    target = section.text(kind, required=bool(kinds))
    key = value = partitions = deleted = encode = None
    configs: dict[str, Text] = {}
    columns: list[Text] = []
    if kind == TOPIC_SINK:
        if target is not None:
            check_topic_name(section, kind, target)
        key, value = section.text("key"), section.text("value")
        partitions, configs = section.positive("partitions", INT_MAX), section.pairs("configs")
        encode = _encode(section, target, value)
    elif kind == TABLE_SINK:
        columns, deleted = section.texts("key"), section.text("delete-when")
        if not columns:
            section.wrong("key", "is missing: name the columns of the table's key")
        if target is not None and local_path(target) is None:
            section.wrong(kind, f"must be a directory, and {target} is not one")
    elif kind != "console":
        columns = section.texts("partition-by")
    section.done()
    if stage is None or target is None:
        return None
    return Sink(
        line=section.line,
        stage=stage,
        kind=kind,
        target=str(target),
        target_line=target.line,
        key=key,
        value=value,
        partitions=partitions,
        configs={name: str(text) for name, text in configs.items()},
        columns=tuple(columns),
        deleted=deleted,
        encode=encode,
    )


def _encode(section: Section, topic: Text | None, value: Text | None) -> RegistryUse | None:
    inner = section.section("encode")
    if inner is None:
        return None
    if value is not None:
        section.wrong(
            "encode", "cannot be combined with value: with encode all columns are fields of the value"
        )
    format = inner.choice("format", tuple(REGISTRY_FORMATS), "avro")
    encode = read_registry(inner, format, [str(topic)])
    inner.done()
    return encode

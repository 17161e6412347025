"""The small text files that Kafka keeps beside the logs.

An offset checkpoint is: a line with the version (0), a line with the number of entries, then one entry a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final

from strandline.base.ids import TopicPartition, parse_uuid, uuid_text

_VERSION: Final = 0


class MalformedCheckpoint(ValueError):
    """A checkpoint file whose text does not follow its format."""


def _render(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "\n".join([str(_VERSION), str(len(lines)), *lines, ""]).encode()


def _entries(data: bytes, fields: int) -> list[list[str]]:
    if not data:
        return []  # Kafka creates the file before there is anything to write
    try:
        lines = data.decode().split("\n")
        if int(lines[0]) != _VERSION:
            raise MalformedCheckpoint(f"the version is {lines[0]}, where {_VERSION} is expected")
        count = int(lines[1])
    except (ValueError, IndexError) as error:
        raise MalformedCheckpoint(str(error)) from error
    entries = [line.rsplit(" ", fields - 1) for line in lines[2:-1]]
    if len(entries) != count or any(len(entry) != fields for entry in entries) or lines[-1]:
        raise MalformedCheckpoint(f"{count} entries of {fields} fields are announced, and others are there")
    return entries


def render_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return _render(f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items()))


def parse_offsets(data: bytes) -> dict[TopicPartition, int]:
    try:
        return {
            TopicPartition(topic, int(number)): int(offset) for topic, number, offset in _entries(data, 3)
        }
    except ValueError as error:
        raise MalformedCheckpoint(str(error)) from error


def render_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    return _render(f"{epoch} {offset}" for epoch, offset in epochs)


def parse_epochs(data: bytes) -> list[tuple[int, int]]:
    try:
        epochs = [(int(epoch), int(offset)) for epoch, offset in _entries(data, 2)]
    except ValueError as error:
        raise MalformedCheckpoint(str(error)) from error
    for earlier, later in pairwise(epochs):
        if earlier[0] >= later[0] or earlier[1] >= later[1]:
            raise MalformedCheckpoint(
                f"epoch {later[0]} at {later[1]} behind epoch {earlier[0]} at {earlier[1]}"
            )
    return epochs


def render_partition_metadata(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def parse_partition_metadata(data: bytes) -> bytes:
    fields = dict(line.split(": ", 1) for line in data.decode().split("\n") if ": " in line)
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise MalformedCheckpoint("partition.metadata has no version 0 or no topic_id")
    return parse_uuid(fields["topic_id"].strip())


def render_properties(properties: Mapping[str, str]) -> bytes:
    """meta.properties: plain `key=value` lines; every key and value in it is free of characters to escape."""
    return "".join(f"{key}={value}\n" for key, value in sorted(properties.items())).encode()


def parse_properties(data: bytes) -> dict[str, str]:
    lines = (line.strip() for line in data.decode().split("\n"))
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}

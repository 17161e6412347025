"""Reads and writes reassignments in Kafka's JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from strandline.cli.failures import reason_of, usage

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition


def to_json(replicas: Mapping[TopicPartition, Iterable[int]]) -> dict[str, Any]:
    return {
        "version": 1,
        "partitions": [
            {"topic": each.topic, "partition": each.partition, "replicas": list(nodes)}
            for each, nodes in sorted(replicas.items())
        ],
    }


def read(path: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Returns the replicas by partition from a file; - is stdin."""
    from strandline.base.ids import TopicPartition

    try:
        if path == "-":
            found = json.load(sys.stdin)
        else:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        return {
            TopicPartition(str(each["topic"]), int(each["partition"])): tuple(
                int(node) for node in each["replicas"]
            )
            for each in found["partitions"]
        }
    except OSError as error:
        raise usage(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise usage(
            f"{path} is not a reassignment ({reason_of(error)}): it must be like "
            '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2, 3]}]}'
        ) from error

"""Logs as Apache Kafka's dump tool reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.oracle.kafka_tools import KafkaTools, ToolResult


def dump(tools: KafkaTools, files: Sequence[Path], *options: str) -> ToolResult:
    assert files
    return tools.run("DumpLogSegments", *options, "--files", joined(files)).succeeded()


def joined(files: Sequence[Path]) -> str:
    return ",".join(map(str, files))


def cluster_id(data: Path) -> str:
    lines = (data / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("cluster.id="))

"""A small spec, and what is wrong with variations of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.yaml_lines import SpecError

SPEC = """\
pipeline: orders
brokers: localhost:9092
checkpoint: checkpoint
sources:
  orders:
    topic: orders
    decode:
      format: json
      schema:
        id: bigint not null
        amount: decimal(9, 2)
        at: timestamp
    watermark: {column: at, delay: 1 hour}
transforms:
  - name: big
    sql: |
      SELECT *
      FROM orders WHERE amount > 10
sinks:
  - from: big
    topic: big-orders
    key: id
"""


def mistakes_of(directory: Path, text: str) -> list[tuple[int, str]]:
    path = directory / "spec.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as raised:
        load(path, {})
    assert all(str(each).startswith(f"{path}:{each.line}: ") for each in raised.value.mistakes)
    return [(each.line, each.text) for each in raised.value.mistakes]

"""One list of requests, run against any broker in order on one connection; `test_oracle_answers` compares the
responses."""

from __future__ import annotations

from collections.abc import Iterator

from tests.compat.oracle_absent_script import absent_steps
from tests.compat.oracle_admin_script import (
    api_version_steps,
    changed_config_steps,
    client_metrics_steps,
    config_steps,
    deletion_steps,
    description_steps,
    group_config_steps,
    growth_steps,
    topic_steps,
)
from tests.compat.oracle_data_script import fetch_steps, offset_steps, produce_steps
from tests.compat.oracle_steps import Step


def steps() -> Iterator[Step]:
    yield from api_version_steps()
    yield from topic_steps()
    yield from produce_steps()
    yield from fetch_steps()
    yield from offset_steps()
    yield from config_steps()
    yield from group_config_steps()
    yield from client_metrics_steps()
    yield from description_steps()
    yield from changed_config_steps()
    yield from absent_steps()
    yield from deletion_steps()
    yield from growth_steps()

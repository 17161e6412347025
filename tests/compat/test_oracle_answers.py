"""The same requests to Apache Kafka and to Strandline get the same responses, field by field.

What may differ is listed here with a reason and described in docs/internals/divergence.md. Ids, addresses, times and
the wording of messages are replaced by placeholders first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from strandline.wire.record_batch import headers_in
from strandline.wire.schema import ZERO_UUID, Struct
from tests.compat.oracle_data_script import WRITTEN
from tests.compat.oracle_script import steps
from tests.compat.oracle_steps import Run, Step
from tests.compat.wire import WireClient
from tests.oracle.apache_kafka import ApacheKafka

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

# Fields whose values are each broker's own; present or absent is still compared.
OWN = {
    "cluster_id",
    "controller_id",
    "finalized_features",
    "finalized_features_epoch",
    "host",
    "is_cordoned",
    "log_append_time_ms",
    "log_dir",
    "port",
    "producer_id",
    "supported_features",
    "topic_id",
    "total_bytes",
    "usable_bytes",
    "zk_migration_ready",
}


# Sentences are each broker's own, and Strandline has some where Kafka has none.
WORDS = {"error_message", "batch_index_error_message"}


class Answers(NamedTuple):
    strandline: dict[str, Any]
    apache: dict[str, Any]


@pytest.fixture(scope="module")
def answers(apache_kafka: ApacheKafka) -> Iterator[Answers]:
    from strandline.testing import running_broker

    with running_broker() as broker:
        yield Answers(_run(broker.bootstrap), _run(apache_kafka.bootstrap))


def _run(bootstrap: str) -> dict[str, Any]:
    run: Run = {}
    found = {}
    with WireClient(bootstrap) as client:
        for step in steps():
            answer = _settled(client, step, run)
            run[step.name] = answer
            found[step.name] = normal(answer)
    return found


def _settled(client: WireClient, step: Step, run: Run) -> Any:
    """Kafka's image follows its controller with a delay; steps that look at fresh topics are asked again."""
    request = step.build(run)
    deadline = time.monotonic() + 90
    while True:
        answer = client.call(request, step.version)
        if "no-such" in repr(request) or not _looks_unsettled(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.05)


def _looks_unsettled(answer: Any) -> bool:
    """LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, COORDINATOR_LOAD_IN_PROGRESS: it says itself to ask again."""
    return any(code in (5, 6, 14) for code in _error_codes(answer))


def _error_codes(value: Any) -> Iterator[int]:
    if isinstance(value, Struct):
        for f in value.FIELDS:
            inner = getattr(value, f.name)
            if f.name == "error_code":
                yield inner
            else:
                yield from _error_codes(inner)
    elif isinstance(value, tuple):
        for item in value:
            yield from _error_codes(item)


def normal(value: Any, name: str = "") -> Any:
    """Plain data that can be compared: own values replaced, order of what has none sorted away."""
    if isinstance(value, Struct):
        plain = {f.name: normal(getattr(value, f.name), f.name) for f in value.FIELDS if f.name not in WORDS}
        if plain.get("error_code") and "log_start_offset" in plain:
            plain["log_start_offset"] = "own"
        return plain
    if isinstance(value, tuple):
        items = [normal(item) for item in value]
        return sorted(items, key=repr) if items and isinstance(items[0], dict) else items
    if name in OWN:
        return "own" if value not in (None, "", -1, ZERO_UUID) else value
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else value


@pytest.mark.parametrize(
    "step",
    [step for step in steps() if not step.name.startswith("ApiVersions v")],
    ids=lambda step: step.name,
)
def test_response_is_that_of_apache_kafka(answers: Answers, step: Step) -> None:
    assert answers.strandline[step.name] == answers.apache[step.name]


@pytest.mark.parametrize("step", [f"Fetch v{version}" for version in range(4, 19)])
def test_both_brokers_have_the_records_that_are_compared(answers: Answers, step: str) -> None:
    for found in answers:
        (topic,) = found[step]["responses"]
        (partition,) = topic["partitions"]
        assert sum(header.record_count for _, header in headers_in(partition["records"])) == WRITTEN


@pytest.mark.parametrize("version", range(5))
def test_announced_versions_are_those_of_apache_kafka(answers: Answers, version: int) -> None:
    """Strandline announces fewer APIs and features, and each in the versions in which Kafka does."""
    ours, theirs = answers.strandline[f"ApiVersions v{version}"], answers.apache[f"ApiVersions v{version}"]
    by_key = {api["api_key"]: api for api in theirs["api_keys"]}
    assert ours["error_code"] == theirs["error_code"] == 0
    assert ours["api_keys"] == [by_key[api["api_key"]] for api in ours["api_keys"]]
    features = {feature["name"]: feature for feature in theirs["supported_features"]}
    assert ours["supported_features"] == [features[each["name"]] for each in ours["supported_features"]]

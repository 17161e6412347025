"""Responses with an error: of any API, encodable in every version, with the code where clients look for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from strandline.broker.api.table import TABLE
from strandline.node.faults.refusal import merged, refusal, split
from strandline.node.faults.rule import parse_rule
from strandline.node.faults.subject import groups_of, message_class, topics_of, transactions_of
from strandline.rpc.channel import response_class
from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.codec import decode, encode
from strandline.wire.error_codes import error_codes
from strandline.wire.schema import Struct


def sample(cls: type[Any], version: int) -> Any:
    """Returns a message with one element in each array, and names in its strings."""
    values: dict[str, Any] = {}
    for field in cls.FIELDS:
        if version not in field.versions:
            continue
        kind, element = field.type.name, field.type.element
        if kind == "array":
            is_struct = isinstance(element, type) and issubclass(element, Struct)
            values[field.name] = (sample(element, version) if is_struct else _plain(element.name),)
        elif kind == "struct":
            values[field.name] = sample(element, version)
        elif field.is_required:
            values[field.name] = _plain(kind)
    return cls(**values)


def _plain(kind: str) -> Any:
    plain = {
        "string": "name",
        "bytes": b"",
        "records": None,
        "uuid": bytes(16),
        "bool": False,
        "float64": 0.0,
    }
    return plain.get(kind, 0)


@pytest.mark.parametrize("api_key", sorted(TABLE))
def test_refusal_has_the_code_in_every_version(api_key: int) -> None:
    row = TABLE[api_key]
    cls = message_class(api_key)
    import_module(cls.__module__)
    for version in range(row.version_min, row.version_max + 1):
        request = decode(cls, version, bytes(encode(sample(cls, version), version)))
        response = refusal(request, version, 16)
        read = decode(response_class(cls), version, bytes(encode(response, version)))
        partition_codes = "partition_error_code=16" in repr(read)
        assert 16 in error_codes(read) or partition_codes, (row.name, version, read)


def produce(*partitions: tuple[str, int]) -> ProduceRequest:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=tuple(
            TopicProduceData(
                name=name,
                partition_data=tuple(PartitionProduceData(index=each, records=b"") for each in numbers),
            )
            for name, numbers in topics.items()
        ),
    )


def test_request_is_split_at_the_partition_of_a_fault_and_the_responses_are_joined() -> None:
    rule = parse_rule({"kind": "error", "api": "Produce", "error": 10, "topic": "a", "partition": 1})
    struck, rest = split(produce(("a", 0), ("a", 1), ("b", 1)), rule, lambda _: "")
    assert rest is not None
    assert list(topics_of(struck, lambda _: "")) == [("a", [1])]
    assert list(topics_of(rest, lambda _: "")) == [("a", [0]), ("b", [1])]
    joined = merged(refusal(struck, 9, 10), refusal(rest, 9, 0))
    said = {
        (topic.name, part.index, part.error_code)
        for topic in joined.responses
        for part in topic.partition_responses
    }
    assert said == {("a", 0, 0), ("b", 1, 0), ("a", 1, 10)}


def test_request_of_one_struck_topic_has_no_rest() -> None:
    rule = parse_rule({"kind": "error", "api": "Produce", "error": 10, "topic": "a"})
    struck, rest = split(produce(("a", 0), ("a", 1)), rule, lambda _: "")
    assert rest is None
    assert list(topics_of(struck, lambda _: "")) == [("a", [0, 1])]


def test_coordinator_keys_are_groups_or_transactional_ids() -> None:
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=("x",))
    assert list(transactions_of(request)) == ["", "x"]
    assert list(groups_of(request)) == []

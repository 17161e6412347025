"""Descriptions of faults: those that can never strike are refused, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.broker.api.table import TABLE
from strandline.node.faults.disk import parse_disk_fault
from strandline.node.faults.rule import KINDS, FaultError, parse_rule
from strandline.node.faults.subject import message_class
from strandline.rpc.channel import response_class
from strandline.wire.api_index import API_INDEX


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"kind": "explode"}, "there is no fault 'explode'"),
        (
            {"kind": "error", "api": "Produze", "error": "NOT_COORDINATOR"},
            "no API is called 'Produze'.*Produce",
        ),
        ({"kind": "error", "api": 999, "error": "NOT_COORDINATOR"}, "no API is called 999"),
        ({"kind": "error", "api": "Produce", "error": "OOPS"}, "no error is called 'OOPS'"),
        ({"kind": "error", "api": "Produce", "error": 0}, "error 0 is success"),
        ({"kind": "error", "api": "Produce"}, "no error is called None"),
        ({"kind": "error", "error": "NOT_COORDINATOR"}, "error needs api"),
        ({"kind": "disconnect", "api": "Produce", "version": 99}, "is not spoken in version 99: 3 to 13 are"),
        ({"kind": "disconnect", "version": 3}, "version says nothing without api"),
        ({"kind": "disconnect", "api": "Heartbeat", "topic": "t"}, "Heartbeat names no topics"),
        ({"kind": "disconnect", "api": "Heartbeat", "partition": 0}, "Heartbeat names no topics"),
        ({"kind": "disconnect", "api": "Produce", "group": "g"}, "Produce names no group"),
        ({"kind": "disconnect", "api": "Fetch", "transactional_id": "t"}, "Fetch names no transactional id"),
        ({"kind": "disconnect", "api": "Vote"}, "Vote is sent by nodes only"),
        ({"kind": "disconnect", "api": "Produce", "partition": -1}, "the first is 0"),
        ({"kind": "disconnect", "nth": 0}, "the first request is 1"),
        ({"kind": "disconnect", "times": 0}, "it would never strike"),
        ({"kind": "disconnect", "probability": 0}, "more than 0 and at most 1"),
        ({"kind": "disconnect", "probability": 1.5}, "more than 0 and at most 1"),
        ({"kind": "delay"}, "delay needs milliseconds"),
        ({"kind": "throttle", "milliseconds": 10}, "throttle needs api"),
        ({"kind": "throttle", "api": "SaslHandshake", "milliseconds": 10}, "cannot tell of a throttle"),
        (
            {"kind": "throttle", "api": "JoinGroup", "version": 1, "milliseconds": 10},
            "cannot tell of a throttle",
        ),
        ({"kind": "tear", "bytes": -1}, "from 0 on"),
        ({"kind": "drop_response", "applied": True}, "says by itself when it strikes"),
        ({"kind": "disconnect", "colour": "red"}, "a fault of kind disconnect has no 'colour'"),
        ({"kind": "disconnect", "topic": 7}, "topic=7 is not of the kind"),
        ({"kind": "disconnect", "nth": True}, "nth=True is not of the kind"),
        ({"kind": "disconnect", "nth": 10**40}, "nth and times go up to"),
        ({"kind": "disconnect", "milliseconds": 5}, "milliseconds is for delay and throttle"),
        ({"kind": "disconnect", "bytes": 5}, "bytes is for tear"),
        ({"kind": "disconnect", "code": 5}, "has no 'code'"),
        ({"kind": "disconnect", "error": "NOT_COORDINATOR"}, "has no 'error'"),
        ({"kind": "disconnect", "connection": "my-laptop"}, "is no address of a client"),
        ({"kind": "error", "api": "Produce", "error": 70000}, "it has 16 bits"),
    ],
)
def test_fault_that_can_never_strike_is_refused(described: dict[str, Any], reason: str) -> None:
    with pytest.raises(FaultError, match=reason):
        parse_rule(described)


def test_every_client_api_can_have_every_fault_without_matchers() -> None:
    for key, row in TABLE.items():
        for kind in KINDS:
            extra: dict[str, Any] = {"error": {"error": "UNKNOWN_SERVER_ERROR"}}.get(kind, {})
            if kind in ("delay", "throttle"):
                extra = {"milliseconds": 1}
            nodes = {"from_nodes": True} if row.listener == "controller" else {}
            described = {"kind": kind, "api": API_INDEX[key].name, **extra, **nodes}
            if kind == "throttle" and not has_throttle(key):
                with pytest.raises(FaultError, match="cannot tell of a throttle"):
                    parse_rule(described)
            else:
                assert parse_rule(described).api == key


def has_throttle(key: int) -> bool:
    return any(field.name == "throttle_time_ms" for field in response_class(message_class(key)).FIELDS)


def test_names_of_apis_and_errors_are_taken_in_any_case() -> None:
    rule = parse_rule({"kind": "error", "api": "offsetcommit", "error": "not_coordinator", "group": "g"})
    assert (rule.api, rule.code, rule.times, rule.nth) == (8, 16, 1, 1)


def test_black_hole_stays_until_it_is_cleared() -> None:
    assert parse_rule({"kind": "black_hole"}).times is None
    assert parse_rule({"kind": "black_hole", "times": 2}).times == 2


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"kind": "wet"}, "a disk cannot be 'wet'"),
        ({"kind": "slow"}, "a slow disk needs milliseconds"),
        ({"kind": "full", "milliseconds": 3}, "a slow disk needs milliseconds"),
        ({"kind": "failing", "operations": ["jump"]}, "a disk has no operation 'jump'"),
        ({"kind": "full", "operations": ["sync"]}, "a full disk refuses writes"),
        ({"kind": "full", "size": 3}, "a fault of a disk has no size"),
        ({"kind": "failing", "operations": 5}, "operations=5 is not a list of read, write, sync"),
        ({"kind": "failing", "operations": "write"}, "operations='write' is not a list"),
        ({"kind": "slow", "milliseconds": True}, "a slow disk needs milliseconds"),
        ({"kind": "full", "topic": ["t"]}, "no topic can have this name"),
        ({"kind": "full", "topic": "no/topic"}, "no topic can have this name"),
    ],
)
def test_fault_of_a_disk_that_makes_no_sense_is_refused(described: dict[str, Any], reason: str) -> None:
    with pytest.raises(FaultError, match=reason):
        parse_disk_fault(described)

"""Responses with an error code to requests that are not applied, for any API.

The response mirrors its request: each topic, partition or group that it names gets the code; a request that names none
gets it in the response's own field. Where a fault is about some partitions of a request only, the rest of the request
is applied and the two responses become one.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Final

from strandline.broker.authorization.reduction import blank
from strandline.node.faults.rule import FaultRule
from strandline.node.faults.subject import (
    TOPIC_ARRAYS,
    TopicName,
    name_of_topic,
    partition_array,
    partition_number,
)
from strandline.rpc.channel import response_class
from strandline.wire.schema import Message, Request, Struct

# Arrays of responses, and the arrays of requests that they mirror.
_REQUEST_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "partition_responses": ("partition_data",),
    "partitions": ("partitions", "partition_indexes"),
    "coordinators": ("coordinator_keys",),
    "results_by_transaction": ("transactions",),
    "topic_results": ("topics",),
    "results_by_partition": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "results": ("groups_names", "topics", "resources", "creations", "users", "upsertions", "feature_updates"),
    "groups": ("groups", "group_ids"),
    "transaction_states": ("transactional_ids",),
    "replica_election_results": ("topic_partitions",),
    "partition_result": ("partitions",),
    "filter_results": ("filters",),
}
_CODES: Final = ("error_code", "partition_error_code")
_NUMBERS: Final = ("partition_index", "partition", "partition_id")
_NAMES: Final = ("group_id", "key", "transactional_id", "name")


def refusal(request: Request, version: int, code: int) -> Message:
    """Returns the response in which everything that the request names has the error `code`."""
    response, is_said = _mirrored(response_class(type(request)), request, version, code)
    if not is_said:
        response.error_code = code
    return response  # type: ignore[no-any-return]


def _mirrored(cls: type[Any], requested: Any, version: int, code: int) -> tuple[Any, bool]:
    """Returns a response, or a part of one, that mirrors the request, and True if an element of its arrays has the
    code."""
    values: dict[str, Any] = {}
    is_said = False
    for field in cls.FIELDS:
        name, element = field.name, field.type.element
        if version not in field.versions:
            continue
        if field.type.name == "array" and isinstance(element, type) and issubclass(element, Struct):
            parts = _parts(requested, name)
            if parts and _can_say(element):
                values[name] = tuple(_element(element, part, version, code) for part in parts)
                is_said = True
        elif field.type.name == "records":
            values[name] = b""
        elif name not in _CODES and not isinstance(requested, int | str) and hasattr(requested, name):
            values[name] = getattr(requested, name)
    return blank(cls, **values), is_said


def _element(cls: type[Any], requested: Any, version: int, code: int) -> Any:
    if isinstance(requested, int | str):
        own = _NUMBERS if isinstance(requested, int) else _NAMES
        names = [field.name for field in cls.FIELDS if field.name in own]
        element = blank(cls, **dict.fromkeys(names, requested))
    else:
        element, _ = _mirrored(cls, requested, version, code)
        number = partition_number(requested)
        for field in cls.FIELDS:
            if field.name in (*_NUMBERS, "index") and number >= 0:
                setattr(element, field.name, number)
    for field in cls.FIELDS:
        if field.name in _CODES:
            setattr(element, field.name, code)
        elif field.name == "base_offset":
            setattr(element, field.name, -1)
    return element


def _parts(requested: Any, name: str) -> tuple[Any, ...]:
    if name == "results" and hasattr(requested, "dirs"):  # AlterReplicaLogDirs has topics by directory
        return tuple(topic for each in requested.dirs for topic in each.topics)
    for known in _REQUEST_NAMES.get(name, (name,)):
        found = getattr(requested, known, None)
        if isinstance(found, tuple | list) and found:
            return tuple(found)
    return ()


def _can_say(cls: type[Struct]) -> bool:
    return any(
        field.name in _CODES
        or (
            isinstance(field.type.element, type)
            and issubclass(field.type.element, Struct)
            and _can_say(field.type.element)
        )
        for field in cls.FIELDS
    )


def split(request: Request, rule: FaultRule, topic_name: TopicName) -> tuple[Request, Request | None]:
    """Splits a request into the part that a fault is about, and the rest, which is None if there is none."""
    array = next((name for name in TOPIC_ARRAYS if getattr(request, name, None)), None)
    if array is None or (rule.topic is None and rule.partition is None):
        return request, None
    struck, rest = [], []
    for topic in getattr(request, array):
        if rule.topic is not None and name_of_topic(topic, topic_name) != rule.topic:
            rest.append(topic)
            continue
        field = partition_array(topic)
        if field is None or rule.partition is None:
            struck.append(topic)
            continue
        inside = [_number(part) == rule.partition for part in getattr(topic, field)]
        for group, wanted in ((struck, True), (rest, False)):
            parts = tuple(
                part for part, is_in in zip(getattr(topic, field), inside, strict=True) if is_in is wanted
            )
            if parts:
                group.append(_with(topic, field, parts))
    return _with(request, array, tuple(struck)), _with(request, array, tuple(rest)) if rest else None


def _number(part: Any) -> int:
    return part if isinstance(part, int) else partition_number(part)


def _with(message: Any, field: str, value: Any) -> Any:
    changed = copy(message)
    setattr(changed, field, value)
    return changed


def merged(refused: Any, response: Any) -> Any:
    """Returns one response with the elements of both."""
    for field in refused.FIELDS:
        if field.type.name == "array" and getattr(refused, field.name):
            both = (*(getattr(response, field.name) or ()), *getattr(refused, field.name))
            setattr(response, field.name, both)
    return response


def with_code(response: Any, code: int) -> Any:
    """Sets every error code of a response to a request that was applied, and returns the response."""
    is_said = False
    for field in response.FIELDS:
        element = field.type.element
        if field.type.name == "array" and isinstance(element, type) and issubclass(element, Struct):
            for part in getattr(response, field.name) or ():
                if _can_say(element):
                    with_code(part, code)
                    is_said = True
        elif field.name in _CODES and not isinstance(response, Message):
            setattr(response, field.name, code)
    if not is_said and isinstance(response, Message) and hasattr(response, "error_code"):
        response.error_code = code
    return response

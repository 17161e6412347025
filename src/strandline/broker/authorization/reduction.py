"""The result of authorizing a request: the allowed part, and the denied part of the response.

A denied part of a response mirrors the part of the request that it is about: the same names and numbers, with an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from strandline.base.errors import ErrorCode
from strandline.rpc.channel import response_class
from strandline.wire.schema import ZERO_UUID, Field, Message, Request, Struct

MESSAGES: Final[dict[int, str]] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "The throttling quota has been exceeded.",
}
# The fields of responses that have another name in requests.
_REQUEST_NAMES: Final = {
    "partitions": ("partitions", "partition_indexes"),
    "results_by_partition": ("partitions",),
    "partition_results": ("partitions",),
}
_ERROR_CODES: Final = ("error_code", "partition_error_code")
_INDEXES: Final = ("partition_index", "partition", "partition_id")
_IDS: Final = ("group_id", "key", "transactional_id", "name")


class Reduction(NamedTuple):
    """The allowed part of a request, None if nothing is allowed. `merge` gets the response to it, or None, and returns
    the whole response."""

    request: Request | None
    merge: Callable[[Any], Message]


def denied(response: Message) -> Reduction:
    """Returns the denial of a whole request, with this response."""
    return Reduction(None, lambda _: response)


def denied_as_whole(request: Request, code: int) -> Reduction:
    """Returns the denial of a whole request, by an error code of its response."""
    fields: dict[str, Any] = {"error_code": code}
    cls = response_class(type(request))
    if any(field.name == "error_message" for field in cls.FIELDS):
        fields["error_message"] = MESSAGES[code]
    return denied(blank(cls, **fields))


def blank(cls: type[Any], **known: Any) -> Any:
    """Returns a message, or a part of one, with the default values of Kafka's schemas."""
    values = {field.name: _unset(field) for field in cls.FIELDS if field.is_required}
    return cls(**{**values, **known})


def _unset(field: Field) -> Any:
    kind = field.type.name
    if kind == "struct":
        return blank(field.type.element)
    unset = {"string": "", "bytes": b"", "records": None, "array": (), "bool": False, "uuid": ZERO_UUID}
    return unset.get(kind, 0)


def mirrored(cls: type[Any], requested: Any, code: int, **other: Any) -> Any:
    """Returns the part of a response that denies a part of a request with `code`; `other` fields are set too where
    `cls` or its innermost parts have them."""
    values: dict[str, Any] = {}
    for field in cls.FIELDS:
        name = field.name
        if name in _ERROR_CODES:
            values[name] = code
        elif name == "error_message":
            values[name] = MESSAGES.get(code)
        elif name in other:
            values[name] = other[name]
        elif isinstance(requested, int | str):
            if name in (_INDEXES if isinstance(requested, int) else _IDS):
                values[name] = requested
        elif field.type.name == "array" and isinstance(field.type.element, type):
            parts = _parts_of(requested, name)
            values[name] = tuple(mirrored(field.type.element, part, code, **other) for part in parts)
        elif hasattr(requested, name):
            values[name] = getattr(requested, name)
    return blank(cls, **values)


def _parts_of(requested: Any, name: str) -> tuple[Any, ...]:
    for known in _REQUEST_NAMES.get(name, (name,)):
        if hasattr(requested, known):
            return getattr(requested, known) or ()
    return ()


def element_of(cls: type[Struct], name: str) -> type[Struct]:
    """Returns the class of the elements of an array."""
    element: type[Struct] = next(field for field in cls.FIELDS if field.name == name).type.element
    return element


def without_denied(
    request: Any,
    name: str,
    is_allowed: Callable[[Any], bool],
    code: int,
    *,
    response_name: str | None = None,
    **other: Any,
) -> Reduction | None:
    """Returns a request without the elements of its array `name` that are denied; None if none is.

    The response has them in the array `response_name`, mirrored.
    """
    requested = getattr(request, name) or ()
    verdicts = [is_allowed(each) for each in requested]
    if all(verdicts):
        return None
    place = response_name or name
    cls = response_class(type(request))
    element = element_of(cls, place)
    allowed = tuple(each for each, verdict in zip(requested, verdicts, strict=True) if verdict)
    refused = tuple(
        mirrored(element, each, code, **other)
        for each, verdict in zip(requested, verdicts, strict=True)
        if not verdict
    )
    setattr(request, name, allowed)

    def merge(response: Any) -> Message:
        whole = blank(cls) if response is None else response
        setattr(whole, place, tuple(getattr(whole, place) or ()) + refused)
        return whole  # type: ignore[no-any-return]

    return Reduction(request if allowed else None, merge)

"""A broker's own settings are altered through that broker: what came to the wrong one is not passed on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from strandline.base.errors import ErrorCode, KafkaError
from strandline.config import Refused, misdirected
from strandline.controller.image import BROKER_RESOURCE


class Resource(Protocol):
    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


R = TypeVar("R", bound=Resource)


def sorted_out(node_id: int, resources: Iterable[R]) -> tuple[tuple[R, ...], list[tuple[R, KafkaError]]]:
    """Those that the controller may decide on, and those that are refused here."""
    passed, refused = [], []
    for resource in resources:
        flaw: Refused | None = None
        if resource.resource_type == BROKER_RESOURCE:
            flaw = misdirected(node_id, resource.resource_name)
        if flaw is None:
            passed.append(resource)
        else:
            refused.append((resource, KafkaError(ErrorCode[flaw.error], flaw.message)))
    return tuple(passed), refused

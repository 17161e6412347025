"""What AlterConfigs and IncrementalAlterConfigs share: the same answers, and who may be asked.

A broker's own settings are altered through that broker: what came to the wrong one is not passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.connection import RequestContext
from strandline.config import Refused, misdirected
from strandline.controller.image import BROKER_RESOURCE

if TYPE_CHECKING:
    from strandline.broker.broker import Broker


class Resource(Protocol):
    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


R = TypeVar("R", bound=Resource)
A = TypeVar("A")  # one resource in the response


async def alter(
    broker: Broker,
    context: RequestContext,
    resources: Iterable[R],
    ask: Callable[[tuple[R, ...]], Any],
    answer: Callable[..., A],
) -> tuple[A, ...]:
    """Has the controller decide on those that are for it; `ask` makes the request, `answer` a resource's answer."""
    passed, wrong = _sorted_out(broker.node_id, resources)
    answers = [refusal(resource, error, answer) for resource, error in wrong]
    if passed or not wrong:
        response: Any = await broker.decide(context, ask(passed))
        answers += response.responses
    return tuple(answers)


def refusal(resource: Resource, error: KafkaError, answer: Callable[..., A]) -> A:
    return answer(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _sorted_out(node_id: int, resources: Iterable[R]) -> tuple[tuple[R, ...], list[tuple[R, KafkaError]]]:
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

"""What AlterConfigs and IncrementalAlterConfigs share: the same answers, and who may be asked.

A broker's own settings are altered through that broker, and those of all through any: it knows which go together with
its own file. What it refuses, or what came to the wrong one, is not passed on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.server.connection import RequestContext
from strandline.config import Altered, Refused, misdirected
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
    decide: Callable[[R], Altered | Refused],
    ask: Callable[[tuple[R, ...]], Any],
    answer: Callable[..., A],
) -> tuple[A, ...]:
    """Has the controller decide on those that are for it.

    `decide` says what this broker makes of a change of brokers' settings, `ask` makes the request for the controller,
    `answer` a resource's answer.
    """
    passed, wrong = _sorted_out(broker.node_id, tuple(resources), decide)
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


def _sorted_out(
    node_id: int, resources: tuple[R, ...], decide: Callable[[R], Altered | Refused]
) -> tuple[tuple[R, ...], list[tuple[R, KafkaError]]]:
    """Those that the controller may decide on, and those that are refused here."""
    passed, refused = [], []
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        decided: Altered | Refused | None = None
        # The controller refuses what is there twice, as long as it sees both.
        is_alone = counts[resource.resource_type, resource.resource_name] == 1
        if resource.resource_type == BROKER_RESOURCE and is_alone:
            decided = misdirected(node_id, resource.resource_name) or decide(resource)
        if isinstance(decided, Refused):
            refused.append((resource, KafkaError(ErrorCode[decided.error], decided.message)))
        else:
            passed.append(resource)
    return tuple(passed), refused

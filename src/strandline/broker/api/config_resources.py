"""The common part of AlterConfigs and IncrementalAlterConfigs: which broker takes a request, and the responses.

The settings of one broker are altered through that broker, and those of all brokers through any: each knows which of
them fit its own file. Changes that it refuses, and requests that came to the wrong broker, are not forwarded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.config import Altered, RefusedAlteration, misdirected
from strandline.controller.image import BROKER_RESOURCE


class Resource(Protocol):
    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


R = TypeVar("R", bound=Resource)
A = TypeVar("A")  # a resource in the response


async def alter(
    services: Services,
    context: RequestContext,
    resources: Iterable[R],
    decide: Callable[[R], Altered | RefusedAlteration],
    request_of: Callable[[tuple[R, ...]], Any],
    result_of: Callable[..., A],
) -> tuple[A, ...]:
    """Has the controller decide on the resources that are forwarded to it.

    `decide` checks a change of brokers' settings on this broker, `request_of` makes the request for the controller,
    `result_of` the result of one resource.
    """
    passed, wrong = _sorted_out(services.node.node_id, tuple(resources), decide)
    results = [refusal(resource, error, result_of) for resource, error in wrong]
    if passed or not wrong:
        response: Any = await decided_by_controller(services, context, request_of(passed))
        results += response.responses
    return tuple(results)


def refusal(resource: Resource, error: KafkaError, result_of: Callable[..., A]) -> A:
    return result_of(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _sorted_out(
    node_id: int, resources: tuple[R, ...], decide: Callable[[R], Altered | RefusedAlteration]
) -> tuple[tuple[R, ...], list[tuple[R, KafkaError]]]:
    """Returns the resources that are forwarded to the controller, and those that are refused here."""
    passed, refused = [], []
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        decided: Altered | RefusedAlteration | None = None
        # The controller refuses a resource that is there twice, so both must be forwarded.
        is_alone = counts[resource.resource_type, resource.resource_name] == 1
        if resource.resource_type == BROKER_RESOURCE and is_alone:
            decided = misdirected(node_id, resource.resource_name) or decide(resource)
        if isinstance(decided, RefusedAlteration):
            refused.append((resource, KafkaError(ErrorCode[decided.error], decided.message)))
        else:
            passed.append(resource)
    return tuple(passed), refused

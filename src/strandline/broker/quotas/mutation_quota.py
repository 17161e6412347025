"""`controller_mutation_rate`: the number of partitions that a client may create and delete per second (KIP-599).

The controller counts. In versions with THROTTLING_QUOTA_EXCEEDED the topics of a request after the quota is used up get
this error; in older versions the response only has the throttle time. Changes that fail for other reasons count too.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from strandline.base.errors import ErrorCode
from strandline.base.quota_windows import TokenBucket
from strandline.broker.authorization.reduction import Reduction, without_denied
from strandline.broker.node_context import NodeContext
from strandline.broker.quotas.limits import QuotaLimit, QuotaLimits
from strandline.controller.client_quotas import CONTROLLER_MUTATION_RATE
from strandline.controller.image import TopicState
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.schema import Request

# The first version of each API with the error, and the arrays of topics in request and response.
_STRICT_FROM: Final = {19: 6, 20: 5, 37: 3}
_ARRAYS: Final = {19: ("topics", "topics"), 20: ("topics", "responses"), 37: ("topics", "results")}
_TOPIC_IDS_FROM: Final = 6


class MutationQuota:
    def __init__(self, node: NodeContext) -> None:
        config = node.config
        seconds = config.int("controller.quota.window.size.seconds") * config.int(
            "controller.quota.window.num"
        )
        self._clock = node.clock
        self._image = node.image
        self._partitions_default = config.int("num.partitions")
        self.limits = QuotaLimits(node.image, CONTROLLER_MUTATION_RATE, partial(TokenBucket, float(seconds)))

    def reduce(self, user: str, client_id: str, request: Request, version: int) -> Reduction | None:
        """Returns the part of a request that the quota allows; None if the request has no quota."""
        if not isinstance(request, CreateTopicsRequest | DeleteTopicsRequest | CreatePartitionsRequest):
            return None
        limit = self.limits.of(user, client_id)
        if limit is None:
            return None
        name, response_name = _ARRAYS[request.API_KEY]
        if isinstance(request, DeleteTopicsRequest) and version < _TOPIC_IDS_FROM:
            name = "topic_names"
        if version < _STRICT_FROM[request.API_KEY]:
            for topic in getattr(request, name):
                limit.window.spend(self._count(topic), limit.rate, self._clock.monotonic())
            return Reduction(request, lambda response: self._with_throttle_time(limit, response))
        reduction = without_denied(
            request,
            name,
            lambda topic: self._takes(limit, self._count(topic)),
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            response_name=response_name,
        )
        if reduction is None:
            return None
        merge = reduction.merge
        return Reduction(reduction.request, lambda response: self._with_throttle_time(limit, merge(response)))

    def _takes(self, limit: QuotaLimit[TokenBucket], count: int) -> bool:
        now = self._clock.monotonic()
        if limit.window.throttle_s(limit.rate, now) > 0:
            return False
        limit.window.spend(count, limit.rate, now)
        return True

    def _with_throttle_time(self, limit: QuotaLimit[TokenBucket], response: Any) -> Any:
        now = self._clock.monotonic()
        throttle_s = limit.window.throttle_s(limit.rate, now)
        if throttle_s > 0:
            limit.throttle_times.record(throttle_s, now)
        response.throttle_time_ms = max(response.throttle_time_ms, round(throttle_s * 1000))
        return response

    def _count(self, topic: CreatableTopic | CreatePartitionsTopic | DeleteTopicState | str) -> int:
        """Returns the number of partitions that would be created or deleted."""
        if isinstance(topic, CreatableTopic):
            if topic.name in self._image.topics:
                return 0
            assignments = len(topic.assignments) or topic.num_partitions
            return assignments if assignments > 0 else self._partitions_default
        known = self._known(topic)
        if known is None:
            return 0
        present = len(known.partitions)
        return max(topic.count - present, 0) if isinstance(topic, CreatePartitionsTopic) else present

    def _known(self, topic: CreatePartitionsTopic | DeleteTopicState | str) -> TopicState | None:
        if isinstance(topic, DeleteTopicState) and topic.name is None:
            return self._image.topics_by_id.get(topic.topic_id)
        name = topic if isinstance(topic, str) else topic.name
        return self._image.topics.get(name or "")

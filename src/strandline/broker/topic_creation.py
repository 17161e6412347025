"""Topics that come into being because somebody asked for them: by name in Metadata, or by looking for a coordinator.

A request waits a moment for the controller and is then answered without the topic, while the creation goes on: what
follows on the same connection is answered in order, and must not wait for a quorum that is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError, error_name
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

_REQUEST_VERSION: Final = 7
# A controller that is there takes some milliseconds.
_WAIT_S: Final = 0.5
_TRY_S: Final = 5.0
_NO_CONTROLLER: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)


class TopicCreation:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # By name; the result is what was refused.
        self._under_way: dict[str, asyncio.Task[dict[str, KafkaError]]] = {}

    async def create(self, topics: Sequence[CreatableTopic]) -> dict[str, KafkaError]:
        """Those that could not be made, and why. A topic that then is not in the image either is still under way."""
        new = [topic for topic in topics if topic.name not in self._under_way]
        if new:
            task = self._broker.tasks.start(self._make(new))
            self._under_way |= dict.fromkeys((topic.name for topic in new), task)
        tasks = {topic.name: self._under_way[topic.name] for topic in topics}
        refused: dict[str, KafkaError] = {}
        try:
            async with asyncio.timeout(_WAIT_S):
                for task in tasks.values():
                    await asyncio.shield(task)
        except TimeoutError:
            pass
        for name, task in tasks.items():
            if task.done() and name in task.result():
                refused[name] = task.result()[name]
        return refused

    async def _make(self, topics: list[CreatableTopic]) -> dict[str, KafkaError]:
        try:
            return await self._ask_the_controller(topics)
        except KafkaError as error:
            names = [topic.name for topic in topics]
            self._broker.events.warn("topics not created", topics=", ".join(names), error=error)
            # Nobody has refused them if there is no controller: whoever still wants one asks again.
            return {} if error.code in _NO_CONTROLLER else dict.fromkeys(names, error)
        finally:
            for topic in topics:
                del self._under_way[topic.name]

    async def _ask_the_controller(self, topics: list[CreatableTopic]) -> dict[str, KafkaError]:
        request = CreateTopicsRequest(topics=tuple(topics))
        response = await self._broker.controllers.forward(request, _REQUEST_VERSION, _TRY_S)
        refused: dict[str, KafkaError] = {}
        for result in response.topics:
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                why = result.error_message or error_name(result.error_code)
                refused[result.name] = KafkaError(result.error_code, why)
                self._broker.events.warn("topic not created", topic=result.name, why=why)
        return refused

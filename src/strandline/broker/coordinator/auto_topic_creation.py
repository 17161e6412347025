"""Creates missing topics: those that Metadata requests name, and the internal topic when a client looks for a
coordinator.

A request waits a moment for the controller. After that its response comes without the topic, while the creation goes
on: later requests of the same connection must not wait for a quorum that is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError, error_name
from strandline.broker.metadata.controller_apis import RequestOrigin
from strandline.broker.metadata.controller_channel import ControllerChannel
from strandline.broker.node_context import NodeContext
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest

_REQUEST_VERSION: Final = 7
# A controller that is alive responds within some milliseconds.
_WAIT_S: Final = 0.5
_TRY_S: Final = 5.0
_CONTROLLER_S_DEFAULT: Final = -1
_NO_CONTROLLER: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)


class AutoTopicCreation:
    def __init__(self, node: NodeContext, channel: ControllerChannel) -> None:
        self._node = node
        self._channel = channel
        # The topics of the coordinators, each with its own settings.
        self.internal_topics: dict[str, Callable[[], CreatableTopic]] = {}
        # Creations by name of the topic; the result is the refusal, or None.
        self._under_way: dict[str, asyncio.Task[dict[str, KafkaError]]] = {}

    async def create_by_name(
        self, names: Sequence[str], origin: RequestOrigin | None
    ) -> dict[str, KafkaError]:
        """Creates topics for a client or for this node; returns the errors of those that could not be created.

        A topic that is then neither refused nor in the image is still being created.
        """
        new = [name for name in names if name not in self._under_way]
        if new:
            task = self._node.tasks.start(self._create([self._topic(name) for name in new], origin))
            self._under_way |= dict.fromkeys(new, task)
        tasks = {name: self._under_way[name] for name in names}
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

    def _topic(self, name: str) -> CreatableTopic:
        """Returns the settings of a new topic: those of a coordinator's topic, or the defaults of this broker or the
        controller."""
        if name in self.internal_topics:
            return self.internal_topics[name]()
        return CreatableTopic(
            name=name,
            num_partitions=self._own_default("num.partitions"),
            replication_factor=self._own_default("default.replication.factor"),
            assignments=(),
            configs=(),
        )

    def _own_default(self, key: str) -> int:
        config = self._node.config
        return config.int(key) if key in config.originals else _CONTROLLER_S_DEFAULT

    async def _create(
        self, topics: list[CreatableTopic], origin: RequestOrigin | None
    ) -> dict[str, KafkaError]:
        try:
            return await self._ask_controller(topics, origin)
        except KafkaError as error:
            names = [topic.name for topic in topics]
            self._node.events.warn("topics not created", topics=", ".join(names), error=error)
            # Without a controller there is no refusal: clients send their requests again.
            return {} if error.code in _NO_CONTROLLER else dict.fromkeys(names, error)
        finally:
            for topic in topics:
                del self._under_way[topic.name]

    async def _ask_controller(
        self, topics: list[CreatableTopic], origin: RequestOrigin | None
    ) -> dict[str, KafkaError]:
        request = CreateTopicsRequest(topics=tuple(topics))
        response = await self._channel.forward(request, _REQUEST_VERSION, origin, _TRY_S)
        refused: dict[str, KafkaError] = {}
        for result in response.topics:
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                why = result.error_message or error_name(result.error_code)
                refused[result.name] = KafkaError(result.error_code, why)
                self._node.events.warn("topic not created", topic=result.name, why=why)
        return refused

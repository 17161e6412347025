"""The base of the admin client: which node a call goes to, for how long, and how errors of single items are raised.

A call is repeated while its error is retriable, until `timeout` (default.api.timeout.ms) is over. A call about
several items returns a dict of results if all succeeded. Otherwise it raises: the error itself if there was one
item, PartialFailureError with the results and the errors of each if there were several.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.config.config import ClientConfig
from strandline.client.config.keywords import AdminKeywords
from strandline.client.errors import (
    ClosedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
    error_for,
)
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.connections import Node, NodeConnection
from strandline.client.net.coordinators import COORDINATOR_MOVED, GROUP
from strandline.client.world import ClientWorld, real_world
from strandline.wire.api.k60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from strandline.wire.schema import Request, Response

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
R = TypeVar("R", bound=Response)

# Retriable errors of a call as a whole; errors of single items are for the caller.
_RETRIED: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


class PartialFailureError(KafkaError):
    """Some of several items failed: `errors` by item, and the `results` of the others."""

    def __init__(self, errors: Mapping[Any, KafkaError], results: Mapping[Any, Any]) -> None:
        first = next(iter(errors.values()))
        text = "; ".join(f"{item}: {error}" for item, error in list(errors.items())[:5])
        super().__init__(
            first.code, f"{len(errors)} of {len(errors) + len(results)} failed: {text}", advice=""
        )
        self.errors = dict(errors)
        self.results = dict(results)


def results_or_raise(results: Mapping[K, V | KafkaError]) -> dict[K, V]:
    """Returns the results if none is an error; otherwise raises the one error, or PartialFailureError with the
    results."""
    errors = {item: result for item, result in results.items() if isinstance(result, KafkaError)}
    successes: dict[K, V] = {
        item: result for item, result in results.items() if not isinstance(result, KafkaError)
    }
    # If everything failed with retriable errors, the call as a whole can be repeated.
    if errors and (
        len(results) == 1 or (not successes and all(error.code in _RETRIED for error in errors.values()))
    ):
        raise next(iter(errors.values()))
    if errors:
        raise PartialFailureError(errors, successes)
    return successes


def error_from(code: int, message: str | None, what: str) -> KafkaError | None:
    """Returns the error of a code in a response, or None if it is no error."""
    return None if code == ErrorCode.NONE else error_for(code, f"{what}: {message}" if message else what)


def check(code: int, message: str | None = None, what: str = "") -> None:
    """Raises the error of a code in a response, if it is one."""
    error = error_from(code, message, what)
    if error is not None:
        raise error


class AdminBase:
    """A connection to the cluster, and calls that are repeated until they succeed or time is over."""

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        /,
        *,
        world: ClientWorld | None = None,
        **keywords: Unpack[AdminKeywords],
    ) -> None:
        """Takes settings by Kafka's names, as a mapping or as keywords with underscores; nothing is connected yet."""
        self.config = ClientConfig.admin(settings, **keywords)
        self._injected_world = world
        self._started_cluster: ClusterClient | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self, *, timeout: float | None = None) -> None:
        """Finds the cluster; raises ConnectionFailedError if that takes longer than `timeout`, or else
        default.api.timeout.ms."""
        world = self._world = self._injected_world or real_world()
        self._started_cluster = ClusterClient(
            self.config,
            world,
            allow_auto_create=False,
            start_seconds=self.config.seconds("default.api.timeout.ms") if timeout is None else timeout,
        )
        try:
            await self._started_cluster.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnects; it may be called again."""
        if self._started_cluster is not None and not self._is_closed:
            self._is_closed = True
            await self._started_cluster.close()
            if self._injected_world is None:
                self._world.close()

    @property
    def _cluster(self) -> ClusterClient:
        if self._is_closed:
            raise ClosedError(None, "the admin client is closed")
        if self._started_cluster is None:
            raise IllegalStateError(None, "the admin client has not been started")
        return self._started_cluster

    # Calls

    def _deadline(self, timeout: float | None) -> float:
        seconds = self.config.seconds("default.api.timeout.ms") if timeout is None else timeout
        return self._cluster.now() + seconds

    def _timeout_ms(self, deadline: float) -> int:
        """Returns how long the broker may take: the time that is left, less a tenth for the way there and back."""
        left = min(deadline - self._cluster.now(), self.config.seconds("request.timeout.ms"))
        return max(1, int(left * 1000 * 0.9))

    async def _retry(self, attempt: Callable[[], Awaitable[T]], deadline: float) -> T:
        """Returns the result of `attempt`, which is repeated while its error is retriable."""
        pause = self._cluster.backoff()
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                if error.code not in _RETRIED or isinstance(error, PartialFailureError):
                    raise
                wait = pause.failed()
                if self._cluster.now() + wait >= deadline:
                    raise KafkaTimeoutError(None, f"it was not done in time: {error}") from error
                self._cluster.request_update()
                await asyncio.sleep(wait)

    async def _call(self, connection: NodeConnection, request: Request, cls: type[R], deadline: float) -> R:
        await connection.open()
        seconds = min(max(0.001, deadline - self._cluster.now()), self.config.seconds("request.timeout.ms"))
        return await connection.call(request, cls, seconds=seconds)

    async def _call_any_broker(self, request: Request, cls: type[R], deadline: float) -> R:
        return await self._call(await self._cluster.least_loaded_connection(), request, cls, deadline)

    async def _call_controller(self, request: Request, cls: type[R], deadline: float) -> R:
        """Returns the response of the node that metadata names as controller: brokers forward such requests to the
        active one."""
        cluster = self._cluster
        if cluster.metadata.controller_id in cluster.metadata.nodes:
            return await self._call(
                cluster.connection(cluster.metadata.controller_id), request, cls, deadline
            )
        return await self._call_any_broker(request, cls, deadline)

    async def _call_broker(self, node_id: int, request: Request, cls: type[R], deadline: float) -> R:
        return await self._call(self._cluster.connection(node_id), request, cls, deadline)

    async def _call_coordinator(
        self, key: str, request: Request, cls: type[R], deadline: float, *, kind: int = GROUP
    ) -> R:
        connection = await self._cluster.coordinators.connection(kind, key, deadline)
        return await self._call(connection, request, cls, deadline)

    async def _retry_with_coordinator(
        self, key: str, attempt: Callable[[], Awaitable[T]], deadline: float, *, kind: int = GROUP
    ) -> T:
        """Does the same as `_retry`, and looks the coordinator up again when it has moved."""

        async def once() -> T:
            try:
                return await attempt()
            except KafkaError as error:
                if error.code in COORDINATOR_MOVED or error.code == ErrorCode.NETWORK_EXCEPTION:
                    self._cluster.coordinators.forget(kind, key)
                raise

        return await self._retry(once, deadline)

    async def _retry_while_known(
        self, node_id: int, attempt: Callable[[], Awaitable[T]], deadline: float
    ) -> T | None:
        """Does the same as `_retry` for one broker of all; returns None if it has left the cluster meanwhile."""

        async def once() -> T | None:
            try:
                return await attempt()
            except KafkaError as error:
                if error.code in _RETRIED and not await self._is_live(node_id, deadline):
                    return None
                raise

        return await self._retry(once, deadline)

    async def _is_live(self, node_id: int, deadline: float) -> bool:
        """Returns False if the controllers count the broker as away. Metadata names such a broker a little longer."""
        request = DescribeClusterRequest(include_cluster_authorized_operations=False)
        try:
            response = await self._call_any_broker(request, DescribeClusterResponse, deadline)
        except UnsupportedVersionError:  # before Kafka 2.8
            return node_id in self._nodes()
        return node_id in {each.broker_id for each in response.brokers}

    def brokers(self) -> tuple[Node, ...]:
        """Returns the brokers that the last metadata named, by id."""
        return tuple(self._cluster.metadata.nodes[node_id] for node_id in self._nodes())

    def _nodes(self) -> list[int]:
        return sorted(self._cluster.metadata.nodes)

    async def _leaders(
        self, partitions: Iterable[TopicPartition], deadline: float
    ) -> dict[int, list[TopicPartition]]:
        """Returns the partitions by the node that leads them; raises if one is unknown or has no leader."""
        by_leader: dict[int, list[TopicPartition]] = {}
        cluster = self._cluster
        requested = [TopicPartition(*each) for each in partitions]
        for name in {each.topic for each in requested}:
            cluster.add_topic(name)  # all before the first wait: one request then gets the metadata of all
        for where in requested:
            info = await cluster.topic(where.topic, deadline)
            if not 0 <= where.partition < len(info.partitions):
                raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {where}")
            leader = info.partitions[where.partition].leader_id
            if leader not in cluster.metadata.nodes:
                raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {where}")
            by_leader.setdefault(leader, []).append(where)
        return by_leader

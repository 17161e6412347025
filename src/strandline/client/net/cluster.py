"""The client's side of a cluster: its connections, fresh metadata and coordinators in one object.

    cluster = ClusterClient(config, world)
    await cluster.start()                       # raises if no bootstrap server responds in time, or none has an address
    info = await cluster.topic("orders", deadline)
    response = await cluster.call(node_id, Request(...), Response)

One background task refreshes the metadata: on request (`request_update`, after any error that speaks of stale
metadata), when it is older than metadata.max.age.ms, and again with backoff while it fails. It fetches only topics
that were named with `add_topic`, or all of them when `wants_all_topics` is set. The bootstrap servers are used again
when no known broker responds (KIP-899), and when a broker says so (KIP-1102).

In Kafka's client this is NetworkClient together with Metadata.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from strandline.base.errors import ErrorCode
from strandline.base.waiting import within
from strandline.client.config.config import ClientConfig
from strandline.client.errors import (
    ClosedError,
    ConnectionFailedError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    UnknownTopicError,
    UnresolvedBootstrapError,
    WrongClusterError,
    error_for,
)
from strandline.client.net.backoff import Backoff
from strandline.client.net.connections import ConnectionPool, Node, NodeConnection
from strandline.client.net.coordinators import Coordinators
from strandline.client.net.metadata import Metadata, TopicInfo, check_topic_name
from strandline.client.world import ClientWorld
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from strandline.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

# A missing topic is logged when this many responses in a row say that it does not exist.
_MISSING_TOLD_AT: Final = 2

logger = logging.getLogger("strandline.client.cluster")


class ClusterClient:
    """The cluster as one client sees it: requests to its nodes, and metadata that is kept fresh."""

    def __init__(
        self,
        config: ClientConfig,
        world: ClientWorld,
        *,
        allow_auto_create: bool = True,
        start_seconds: float = 60.0,
    ) -> None:
        """`start_seconds` bounds `start`: it is max.block.ms for a producer, default.api.timeout.ms for the others."""
        self.config = config
        self.world = world
        self.metadata = Metadata(config.optional_text("cluster.id"))
        self.connections = ConnectionPool(world, config)
        self.connections.on_lost = self._connection_lost
        self.coordinators = Coordinators(
            self.connections, self.least_loaded_connection, self.backoff, self.now
        )
        self.wants_all_topics = False
        self._allow_auto_create = allow_auto_create
        self._start_seconds = start_seconds
        self._bootstrap = tuple(Node(-1 - i, host, port) for i, (host, port) in enumerate(config.bootstrap))
        self._rotation = world.random.below(max(1, len(self._bootstrap)))
        self._topics: dict[str, float] = {}  # by name, when each was last used
        self._wake: asyncio.Event | None = None
        self._refresh_waiters: list[asyncio.Future[None]] = []
        self._refresh_task: asyncio.Task[None] | None = None
        self._needs_update = True
        self._refreshed_at = float("-inf")  # when metadata was last applied
        self._resolve_until = 0.0  # how long a client that starts looks for addresses
        self._failure: KafkaError | None = None
        self._listeners: list[Callable[[], None]] = []
        self._missing: dict[str, int] = {}  # topics that do not exist, and how many responses said so
        self._is_closed = False

    # Start and close

    async def start(self) -> None:
        """Finds the cluster. Raises ConnectionFailedError if no bootstrap server responds in time, and
        UnresolvedBootstrapError, sooner and as Kafka's clients do, if none has an address (KIP-909)."""
        assert self._refresh_task is None, "started twice"
        self._resolve_until = self.now() + self.config.seconds("bootstrap.resolve.timeout.ms")
        self._wake = asyncio.Event()
        self._refresh_task = asyncio.get_running_loop().create_task(self._run_refresher())
        await self.refresh(self.now() + self._start_seconds)

    async def close(self) -> None:
        self._is_closed = True
        if self._refresh_task is not None:
            self._refresh_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._refresh_task
        for waiter in self._refresh_waiters:
            if not waiter.done():
                waiter.set_exception(ClosedError(None, "the client was closed"))
                waiter.exception()
        self.connections.close()

    def now(self) -> float:
        return self.world.clock.monotonic()

    def backoff(self) -> Backoff:
        """Returns a new count of failures, with the pauses of retry.backoff.ms."""
        return Backoff(
            self.config.int("retry.backoff.ms"),
            self.config.int("retry.backoff.max.ms"),
            self.world.random.below,
        )

    def on_change(self, listener: Callable[[], None]) -> None:
        """Has `listener` called after every metadata response and every leader hint that was applied."""
        self._listeners.append(listener)

    # Metadata

    def add_topic(self, name: str) -> None:
        """Keeps this topic's metadata from now on, and requests it if it is missing."""
        if name not in self._topics and name not in self.metadata.topics:
            check_topic_name(name)
            self.request_update()
        self._topics[name] = self.now()

    def set_topics(self, names: list[str]) -> None:
        """Keeps the metadata of exactly these topics, as a consumer's subscription needs them."""
        self._topics = {name: self._topics[name] for name in names if name in self._topics}
        for name in names:
            self.add_topic(name)

    def request_update(self) -> None:
        """Has metadata fetched soon, because something seems stale."""
        self._needs_update = True
        if self._wake is not None:
            self._wake.set()

    def leaders_changed(self) -> None:
        """Calls the listeners, after `metadata.apply_leader_hint`."""
        for listener in self._listeners:
            listener()

    async def refresh(self, deadline: float) -> None:
        """Waits for the next metadata response; after the deadline it raises the error that prevented it."""
        if self._is_closed:
            raise ClosedError(None, "the client is closed")
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refresh_waiters.append(waiter)
        self.request_update()
        try:
            await within(max(0.0, deadline - self.now()), waiter)
        except TimeoutError as error:
            if isinstance(error, KafkaError):
                raise
            raise self._failure or KafkaTimeoutError(None, "no metadata in time") from None
        finally:
            if waiter in self._refresh_waiters:
                self._refresh_waiters.remove(waiter)

    async def topic(self, name: str, deadline: float) -> TopicInfo:
        """Returns a topic's metadata, and waits for it until the deadline; raises UnknownTopicError or a timeout if it
        does not come."""
        self.add_topic(name)
        pause = self.backoff()
        while True:
            info = self.metadata.topics.get(name)
            if info is not None:
                return info
            error = self.metadata.topic_errors.get(name)
            if error is not None and (not error.retriable or isinstance(error, InvalidTopicError)):
                raise error
            left = deadline - self.now()
            if left <= 0:
                raise (
                    error or self._failure or KafkaTimeoutError(None, f"no metadata of topic {name} in time")
                )
            if isinstance(error, UnknownTopicError):
                await asyncio.sleep(min(left, pause.failed()))
            try:
                await self.refresh(deadline)
            except KafkaTimeoutError:
                continue

    # Requests

    async def call(
        self,
        node_id: int,
        request: Request,
        cls: type[R],
        *,
        purpose: str = "data",
        version: int | None = None,
        seconds: float | None = None,
    ) -> R:
        """Returns the response of one node to one request, which is not repeated. Its errors are KafkaErrors."""
        connection = self.connection(node_id, purpose)
        return await connection.call(request, cls, version=version, seconds=seconds)

    def connection(self, node_id: int, purpose: str = "data") -> NodeConnection:
        node = self.metadata.nodes.get(node_id)
        if node is None:
            self.request_update()
            raise ConnectionFailedError(None, f"broker {node_id} is not in the cluster's metadata")
        return self.connections.to(node, purpose)

    async def least_loaded_connection(self, purpose: str = "data") -> NodeConnection:
        """Returns an open connection to the broker with the fewest requests in flight, or to a bootstrap server if no
        broker responds."""
        failure: KafkaError | None = None
        tried = []
        for node in self._candidates(purpose):
            connection = self.connections.to(node, purpose)
            tried.append(connection)
            try:
                await connection.open()
            except KafkaError as error:
                failure = failure or error
                continue
            return connection
        if self._refreshed_at < 0 and tried and all(each.is_unresolved for each in tried):
            raise self._unresolved() from failure
        raise failure or ConnectionFailedError(None, "no broker can be reached")

    def _unresolved(self) -> UnresolvedBootstrapError:
        hosts = ", ".join(dict.fromkeys(node.host for node in self._bootstrap))
        return UnresolvedBootstrapError(
            None,
            f"no address is known for {hosts}: none of the hosts in bootstrap.servers can be resolved",
            advice="correct the names, or set bootstrap.resolve.timeout.ms where they become known later",
        )

    async def call_any(
        self, request: Request, cls: type[R], *, seconds: float | None = None, version: int | None = None
    ) -> R:
        """Returns the response of the least loaded node to one request."""
        connection = await self.least_loaded_connection()
        return await connection.call(request, cls, seconds=seconds, version=version)

    def _candidates(self, purpose: str) -> list[Node]:
        """Returns the nodes to try. Those with an open connection come first, the least loaded of them ahead. The
        others follow, ahead the one that was tried longest ago, so that a silent host is not asked twice in a row.
        Among both, bootstrap servers come after brokers."""
        known = [self.connections.to(node, purpose) for node in self.metadata.nodes.values()]
        self._rotation += 1
        turned = known[self._rotation % len(known) :] + known[: self._rotation % len(known)] if known else []
        candidates = [(False, each) for each in turned if each.retry_seconds == 0]
        if not known or self._may_rebootstrap():
            turn = self._rotation % len(self._bootstrap)
            servers = self._bootstrap[turn:] + self._bootstrap[:turn]
            candidates += [(True, self.connections.to(node, purpose)) for node in servers]
        candidates.sort(
            key=lambda each: (
                not each[1].is_open,
                each[0],
                each[1].in_flight_count if each[1].is_open else each[1].attempted_at,
            )
        )
        return [connection.node for _, connection in candidates]

    def _may_rebootstrap(self) -> bool:
        return self.config.text("metadata.recovery.strategy").lower() == "rebootstrap"

    # Refreshing

    async def _run_refresher(self) -> None:
        assert self._wake is not None
        pause = self.backoff()
        while True:
            self._wake.clear()
            if not self._needs_update:
                await self._sleep_until_due()
                continue
            self._needs_update = False
            try:
                await self._refresh_once()
                self._failure = None
                pause.succeeded()
            except KafkaError as error:
                self._failed(error)
                await asyncio.sleep(pause.failed())
            except Exception as error:
                # Nobody else would notice if this task died: those that wait hear of it now, and it goes on.
                logger.exception("the metadata could not be refreshed")
                self._failed(KafkaError(None, f"the metadata could not be refreshed: {error!r}"))
                await asyncio.sleep(pause.failed())
            else:
                # One request per retry.backoff.ms at most, however many errors speak of stale metadata.
                await asyncio.sleep(self.config.seconds("retry.backoff.ms") if self._needs_update else 0)

    async def _sleep_until_due(self) -> None:
        assert self._wake is not None
        age = self.now() - self._refreshed_at
        seconds = max(0.0, self.config.seconds("metadata.max.age.ms") - age)
        try:
            await within(seconds, self._wake.wait())
        except TimeoutError:
            self._needs_update = True
            self.connections.close_idle()
            self._drop_unused_topics()

    async def _refresh_once(self) -> None:
        waiter_count = len(self._refresh_waiters)
        connection = await self.least_loaded_connection()
        is_everything = self.wants_all_topics
        names = None if is_everything else list(self._topics)
        topics = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=self._allow_auto_create)
        response = await connection.call(request, MetadataResponse)
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self.metadata.nodes.clear()
            self._needs_update = True
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, f"{connection.node} has no metadata to give")
        if not response.brokers:
            raise ConnectionFailedError(None, f"{connection.node} knows of no broker yet")
        try:
            self.metadata.apply(response, is_everything=is_everything)
        except WrongClusterError:
            connection.drop()
            raise
        self._refreshed_at = self.now()
        self._tell_missing_topics()
        self.connections.keep_only(set(self.metadata.nodes))
        waiters, self._refresh_waiters = (
            self._refresh_waiters[:waiter_count],
            self._refresh_waiters[waiter_count:],
        )
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        if self._refresh_waiters:
            self._needs_update = True
        if any(error.retriable for error in self.metadata.topic_errors.values()):
            self._needs_update = True
        self.leaders_changed()

    def _tell_missing_topics(self) -> None:
        """Logs once that a topic does not exist: at the second response without it, for it may just be created."""
        errors = self.metadata.topic_errors
        self._missing = {
            name: self._missing.get(name, 0) + 1
            for name in self._topics
            if isinstance(errors.get(name), UnknownTopicError)
        }
        for name, count in self._missing.items():
            if count == _MISSING_TOLD_AT:
                logger.warning("topic %s does not exist; waiting for it to be created", name)

    def _failed(self, error: KafkaError) -> None:
        self._failure = error
        self._needs_update = True
        trigger = self.config.seconds("metadata.recovery.rebootstrap.trigger.ms")
        if self._refreshed_at > 0 and self.now() - self._refreshed_at > trigger and self._may_rebootstrap():
            # The known nodes are of no use any more; the bootstrap servers may know better (KIP-1102).
            self.metadata.nodes.clear()
        is_lost = isinstance(error, UnresolvedBootstrapError) and self.now() >= self._resolve_until
        is_transient = error.retriable or error.code == ErrorCode.NETWORK_EXCEPTION
        if is_lost or isinstance(error, WrongClusterError) or not is_transient:
            waiters, self._refresh_waiters = self._refresh_waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error)

    def _drop_unused_topics(self) -> None:
        """Forgets topics that a producer sent nothing to for metadata.max.idle.ms."""
        if not self.config.has("metadata.max.idle.ms"):
            return
        oldest = self.now() - self.config.seconds("metadata.max.idle.ms")
        for name in [name for name, used in self._topics.items() if used < oldest]:
            del self._topics[name]
            self.metadata.forget(name)

    def _connection_lost(self, node: Node) -> None:
        if not self._is_closed:
            self.request_update()

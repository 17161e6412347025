"""Runs the controller's state on the metadata log, and monitors brokers while this node leads the quorum.

1. A node becomes the active controller when the first record of its epoch is committed: then its state has all records.
2. A plan's records are applied when they are appended, so that the next plan sees them; the response is sent when they
   are committed. If leadership is lost before that, the state is rebuilt from the committed records.
3. A broker is fenced when its heartbeats stop for `broker.session.timeout.ms`, or at once when its connection breaks
   and its address refuses a probe. A broker whose address accepts connections is never fenced for a lost connection,
   and no broker for a time in which the controller itself was paused.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.broker.authorization.node_authorizer import NodeAuthorizer
from strandline.broker.metadata.decision_log import events_of, tell
from strandline.broker.nodes import is_gone
from strandline.broker.quotas.mutation_quota import MutationQuota
from strandline.broker.tasks import TaskScope
from strandline.controller.brokers import (
    Registration,
    check_epoch,
    plan_controlled_shutdown,
    plan_fence,
    plan_register,
    plan_unfence,
)
from strandline.controller.directories import are_all_offline, plan_offline_directories
from strandline.controller.features import first_records
from strandline.controller.image import BrokerRegistration
from strandline.controller.state import ControllerState
from strandline.ports.clock import Clock
from strandline.ports.network import Network
from strandline.telemetry import loggers
from strandline.telemetry.controller_metrics import ControllerMetrics
from strandline.telemetry.events import Events
from strandline.wire.api.k62_broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from strandline.wire.api.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.records.metadata import BrokerEndpoint, BrokerFeature, PartitionChangeRecord
from strandline.wire.schema import Message

if TYPE_CHECKING:
    from strandline.broker.metadata.raft_node import RaftNode

R = TypeVar("R")
_PROBE_S: Final = 0.5
_AGAIN_S: Final = 0.5
_CLEAN_EPOCH_UNKNOWN: Final = -1


class ControllerRuntime:
    def __init__(
        self,
        *,
        new_state: Callable[[], ControllerState],
        clock: Clock,
        network: Network,
        events: Events,
        tasks: TaskScope,
        node_id: int,
        cluster_id: str,
        session_timeout_s: float,
        inter_broker_listener: str,
        bootstrap: tuple[Message, ...] = (),
    ) -> None:
        """`bootstrap` are records with which a new cluster begins, besides its features: so far users."""
        self._new_state = new_state
        self.state = new_state()
        self.authorizer: NodeAuthorizer | None = None  # None: every user may do everything
        self.mutation_quota: MutationQuota | None = None
        self._clock = clock
        self._network = network
        self._events = events.named(loggers.CONTROLLER)
        self._tasks = tasks
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._session_timeout_s = session_timeout_s
        self._inter_broker_listener = inter_broker_listener
        self._bootstrap = bootstrap
        self.quorum: RaftNode | None = None
        self.metrics = ControllerMetrics()
        self.is_active = False
        # Everything before this offset is in the state.
        self._applied = 0
        self._sessions: dict[int, float] = {}
        self._connections: dict[int, int] = {}  # by broker, the number of its connections to this node
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for: float | None = None

    # Events of the quorum

    def committed(self, message: Message, end_offset: int) -> None:
        if end_offset > self._applied:
            self.state.apply(message)

    def published(self, end_offset: int) -> None:
        self._applied = max(self._applied, end_offset)
        quorum = self.quorum
        led_from = None if quorum is None else quorum.core.led_from
        if not self.is_active and led_from is not None and end_offset > led_from:
            self._activate()

    def snapshot_loaded(self, records: list[Message], end_offset: int) -> None:
        self.state = self._new_state()
        for record in records:
            self.state.apply(record)
        self._applied = end_offset

    def resigned(self) -> None:
        was_active, self.is_active = self.is_active, False
        self._sessions.clear()
        self._disarm()
        quorum = self.quorum
        if was_active and quorum is not None:
            self._rebuild(quorum)

    def _rebuild(self, quorum: RaftNode) -> None:
        """Rebuilds the state without records that were applied and not committed."""
        from strandline.broker.metadata.raft_log import records_of_snapshot

        self.state = self._new_state()
        start = 0
        if quorum.store.snapshot is not None:
            start = quorum.store.snapshot.offset
            for record in records_of_snapshot(quorum.store.read_snapshot()):
                self.state.apply(record)
        self._applied = quorum.applied_offset
        for _, message in quorum.store.messages(start, self._applied):
            if message is not None:
                self.state.apply(message)

    def _activate(self) -> None:
        self.is_active = True
        self.metrics.activations += 1
        now = self._clock.monotonic()
        # A broker that was alive a moment ago has a whole session for its next heartbeat.
        for broker in self.state.image.brokers.values():
            if not broker.fenced and broker.node_id != self._node_id:
                self._sessions[broker.node_id] = now + self._session_timeout_s
                # The broker may have died together with the former controller.
                self._tasks.start(self._probe(broker.node_id))
        self._events.info(
            "active controller", epoch=self.quorum.core.epoch if self.quorum is not None else -1
        )
        if not self.state.image.features:
            self._tasks.start(self._begin_cluster())
        self._arm()

    async def _begin_cluster(self) -> None:
        while self.is_active and not self.state.image.features:
            try:
                await self.commit(
                    lambda: Planned(
                        records=(*first_records(self.state.image, self.state.configs), *self._bootstrap),
                        response=None,
                    )
                )
            except KafkaError as error:
                # The disk is full, or the next controller begins the cluster.
                self._events.warn("the first records of the cluster could not be written", error=error)
                await asyncio.sleep(_AGAIN_S)

    def now_ms(self) -> int:
        """Returns the time for the timestamps of records."""
        return self._clock.wall_ms()

    # Deciding

    async def commit(self, plan: Callable[[], Planned[R]]) -> R:
        """Plans, appends and applies, and returns the response once the records are committed."""
        self.check_active()
        quorum = self.quorum
        assert quorum is not None
        try:
            planned = plan()
        except KafkaError:
            raise
        except Exception as error:
            # A plan changes nothing, so this node need not stop; otherwise the broker that forwarded it would try the
            # next controller.
            trace = "".join(traceback.format_exception(error))
            self._events.error("a request could not be decided", error=repr(error), trace=trace)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The controller failed: {error!r}.") from error
        if not planned.records:
            # The records on which the plan depends may not be committed yet.
            await quorum.settled()
            return planned.response
        began = self._clock.monotonic()
        decisions = events_of(planned.records, self.state.image)
        committed = quorum.append(planned.records)
        elections = self._count_elections(planned.records)
        for record in planned.records:
            self.state.apply(record)
        self._applied = quorum.end_offset
        await committed
        took_s = self._clock.monotonic() - began
        self.metrics.commits.observe(took_s)
        for _ in range(elections):
            self.metrics.elections.observe(took_s)
        tell(self._events, decisions)
        return planned.response

    def _count_elections(self, records: tuple[Message, ...]) -> int:
        """Returns how many partitions get a leader by records that are about to be applied."""
        count = 0
        for record in records:
            if isinstance(record, PartitionChangeRecord) and record.leader >= 0:
                count += 1
                topic = self.state.image.topics_by_id[record.topic_id]
                before = topic.partitions.get(record.partition_id)
                if before is not None and record.leader not in (*before.in_sync, *before.eligible_leaders):
                    self.metrics.unclean_elections += 1
        return count

    def check_active(self) -> None:
        if not self.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This node is not the active controller.")

    def active_quorum(self) -> RaftNode:
        self.check_active()
        assert self.quorum is not None
        return self.quorum

    @property
    def next_offset(self) -> int:
        assert self.quorum is not None
        return self.quorum.end_offset

    # Brokers

    async def register(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        if request.cluster_id != self._cluster_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"The broker expects cluster {request.cluster_id}; this is {self._cluster_id}.",
            )
        old = self.state.image.brokers.get(request.broker_id)
        was_clean = old is not None and request.previous_broker_epoch == old.epoch
        registration = Registration(
            broker_id=request.broker_id,
            incarnation=request.incarnation_id,
            endpoints=tuple(
                BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in request.listeners
            ),
            features=tuple(
                BrokerFeature(
                    name=f.name,
                    min_supported_version=f.min_supported_version,
                    max_supported_version=f.max_supported_version,
                )
                for f in request.features
            ),
            rack=request.rack,
            log_dirs=request.log_dirs,
            was_clean_shutdown=was_clean or old is None,
        )
        is_old_alive = await self._is_alive_elsewhere(registration)
        epoch = await self.commit(
            lambda: plan_register(
                self.state.image, registration, self.next_offset, self.state.rules, is_old_alive=is_old_alive
            )
        )
        self._touch(request.broker_id)
        return BrokerRegistrationResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, broker_epoch=epoch)

    async def _is_alive_elsewhere(self, registration: Registration) -> bool:
        """Returns True if another process with this id is still alive. A process at its former address is its
        successor."""
        broker_id = registration.broker_id
        old = self.state.image.brokers.get(broker_id)
        if (
            old is None
            or old.fenced
            or old.incarnation == registration.incarnation
            or broker_id == self._node_id
        ):
            return False
        if self._connections.get(broker_id):
            return True
        if old.endpoints == registration.endpoints or not old.endpoints:
            return False
        if await self._is_gone(old):
            return False
        return self._sessions.get(broker_id, 0.0) > self._clock.monotonic()

    async def heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        self.check_active()
        self._sender_of(request)
        self._touch(request.broker_id)
        if request.offline_log_dirs:
            await self.commit(
                lambda: plan_offline_directories(
                    self.state.image, request.broker_id, request.offline_log_dirs, self.state.rules
                )
            )
        broker = self._sender_of(request)
        is_usable = not are_all_offline(self.state.image, request.broker_id, request.offline_log_dirs)
        is_caught_up = request.current_metadata_offset >= broker.epoch
        should_shut_down = False
        if request.want_shut_down:
            should_shut_down = await self.commit(
                lambda: plan_controlled_shutdown(self.state.image, request.broker_id, self.state.rules)
            )
        elif request.want_fence:
            await self._commit_fence(request.broker_id)
        elif broker.fenced and is_caught_up and is_usable:
            await self.commit(lambda: plan_unfence(self.state.image, request.broker_id, self.state.rules))
        return BrokerHeartbeatResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.NONE,
            is_caught_up=is_caught_up,
            is_fenced=self._sender_of(request).fenced,
            should_shut_down=should_shut_down,
        )

    def _sender_of(self, request: BrokerHeartbeatRequest) -> BrokerRegistration:
        """Returns the broker that sent a request. It is looked up again after each wait, in which it may have been
        unregistered."""
        return check_epoch(self.state.image, request.broker_id, request.broker_epoch)

    def _touch(self, broker_id: int) -> None:
        if broker_id == self._node_id:
            return  # the broker in this process is alive as long as the process is
        self._sessions[broker_id] = self._clock.monotonic() + self._session_timeout_s
        self._arm()

    def connection_opened(self, broker_id: int) -> None:
        self._connections[broker_id] = self._connections.get(broker_id, 0) + 1

    def connection_lost(self, broker_id: int) -> None:
        self._connections[broker_id] -= 1
        if self.is_active and not self._connections[broker_id]:
            self._tasks.start(self._probe(broker_id))

    async def _commit_fence(self, broker_id: int) -> None:
        await self.commit(lambda: plan_fence(self.state.image, broker_id, self.state.rules))

    async def _probe(self, broker_id: int) -> None:
        broker = self.state.image.brokers.get(broker_id)
        if broker is None or broker.fenced or not broker.endpoints:
            return
        if not await self._is_gone(broker):
            return
        if self._connections.get(broker_id):
            return  # the broker came back meanwhile
        self._events.warn("broker is gone", broker=broker_id)
        await self._fence(broker_id, broker.epoch)

    async def _is_gone(self, broker: BrokerRegistration) -> bool:
        """Returns True if the broker's addresses refuse connections: the one that brokers use, or all if it has none of
        that kind."""
        named = [e for e in broker.endpoints if e.name == self._inter_broker_listener]
        for endpoint in named or broker.endpoints:
            if not await is_gone(self._network, endpoint.host, endpoint.port, _PROBE_S):
                return False
        return True

    async def _fence(self, broker_id: int, epoch: int) -> None:
        try:
            broker = self.state.image.brokers.get(broker_id)
            if broker is not None and broker.epoch == epoch:
                self._sessions.pop(broker_id, None)
                await self._commit_fence(broker_id)
        except KafkaError:
            if self.is_active:
                self._touch(broker_id)  # the disk is full: this is tried again after another session

    # Time

    def _arm(self) -> None:
        deadline = min(self._sessions.values(), default=None)
        self._disarm()
        self._armed_for = deadline
        if deadline is not None and self.is_active:
            delay = max(deadline - self._clock.monotonic(), 0.001)
            self._timer = asyncio.get_running_loop().call_later(delay, self._check_sessions)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_sessions(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        if self._armed_for is not None and now - self._armed_for > self._session_timeout_s / 3:
            # This process was paused: heartbeats may be waiting in its sockets, and the brokers are not to blame.
            self._sessions = dict.fromkeys(self._sessions, now + self._session_timeout_s)
        for broker_id in [b for b, deadline in self._sessions.items() if deadline <= now]:
            del self._sessions[broker_id]
            broker = self.state.image.brokers.get(broker_id)
            if broker is not None and not broker.fenced:
                self.metrics.sessions_expired += 1
                self._events.warn("broker session expired", broker=broker_id)
                self._tasks.start(self._fence(broker_id, broker.epoch))
        self._arm()

    def stop(self) -> None:
        self._disarm()

"""A broker's life in the cluster: it registers, sends heartbeats, is fenced and unfenced, and shuts down."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError, error_name
from strandline.base.waiting import within
from strandline.controller.features import SUPPORTED_FEATURES
from strandline.storage.directory import NO_ID
from strandline.wire.api.k62_broker_registration import BrokerRegistrationRequest, Feature, Listener
from strandline.wire.api.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.records.metadata import BrokerEndpoint

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

_REGISTRATION_VERSION: Final = 4
_HEARTBEAT_VERSION: Final = 1
_EAGER_S: Final = 0.02
# A start that waits longer says what for.
_SAY_S: Final = 5.0
# Kafka's is the same: 5 minutes at most, decided by no setting.
_SHUTDOWN_S: Final = 300.0
_NO_CONTROLLER_S: Final = 2.0
# What a cluster refuses for good, and what to do about it.
_FATAL: Final = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "the log directories belong to another cluster: point controller.quorum.voters "
    "or controller.quorum.bootstrap.servers to the controllers of that one, or give the node empty directories and run "
    "`strandline format --cluster-id ID` with the id of this one",
    ErrorCode.UNSUPPORTED_VERSION: "the cluster uses features that this version does not have: run the version that "
    "the other nodes run",
    ErrorCode.INVALID_REGISTRATION: "the controller's log says what it does not like about this node",
}


class CannotJoin(Exception):
    """The cluster refuses this broker for good, with the reason."""


class Lifecycle:
    def __init__(self, broker: Broker, endpoints: tuple[BrokerEndpoint, ...], previous_epoch: int) -> None:
        self._broker = broker
        self._endpoints = endpoints
        self._previous_epoch = previous_epoch
        self._incarnation = broker.random.uuid()
        self._kick = asyncio.Event()
        self.epoch = -1

    def beat_soon(self) -> None:
        """A new controller should hear of this broker before it wonders, and any controller of a failed disk."""
        self._kick.set()

    async def register(self) -> None:
        """Until the cluster takes it; CannotJoin if it never will."""
        broker = self._broker
        request = BrokerRegistrationRequest(
            broker_id=broker.node_id,
            cluster_id=broker.cluster_id,
            incarnation_id=self._incarnation,
            listeners=tuple(
                Listener(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in self._endpoints
            ),
            features=tuple(
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ),
            rack=broker.config.optional_text("broker.rack"),
            log_dirs=tuple(d.directory_id for d in broker.replicas.directories if d.offline_because is None),
            previous_broker_epoch=self._previous_epoch,
        )
        said = ""
        while True:
            try:
                response = await broker.controllers.call(request, _REGISTRATION_VERSION)
            except KafkaError as error:
                code = error.code
            else:
                code = response.error_code
                if code == ErrorCode.NONE:
                    self.epoch = response.broker_epoch
                    return
            if code in _FATAL:
                raise CannotJoin(
                    f"the controllers refuse broker {broker.node_id} ({error_name(code)}): {_FATAL[ErrorCode(code)]}"
                )
            if said != error_name(code):
                said = error_name(code)
                broker.events.warn("registration is not taken yet", error=said)
            await asyncio.sleep(0.1)

    async def caught_up(self) -> None:
        """Until this node's image has its own registration, and so everything before it."""
        broker = self._broker
        say_at = broker.clock.monotonic() + _SAY_S
        while (offset := broker.quorum.applied_offset) <= self.epoch:
            if broker.clock.monotonic() >= say_at:
                say_at = math.inf
                leader = broker.quorum.leader_id
                broker.events.warn("metadata is behind", offset=offset, wanted=self.epoch, leader=leader)
            await asyncio.sleep(0.002)

    async def unfenced(self) -> None:
        """Until the controller has unfenced this broker and the image says so."""
        clock, pause_s = self._broker.clock, _EAGER_S
        interval_s = self._broker.config.int("broker.heartbeat.interval.ms") / 1000
        say_at, said = clock.monotonic() + _SAY_S, ""
        while True:
            response = await self._beat()
            state = self._broker.image.brokers.get(self._broker.node_id)
            if state is not None and state.epoch == self.epoch and not state.fenced:
                return
            if _is_stale(response):
                await self._register_anew()
                await self.caught_up()
                continue
            if clock.monotonic() >= say_at and said != (why := _why_fenced(response)):
                self._broker.events.warn("the controllers do not unfence this broker yet", why=why)
                said = why
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, interval_s)

    async def _register_anew(self) -> None:
        """The cluster has forgotten this broker, or has taken another for it."""
        self._broker.events.warn("registering again: the registration has been replaced", epoch=self.epoch)
        self._incarnation = self._broker.random.uuid()
        await self.register()

    async def run(self) -> None:
        interval_s = self._broker.config.int("broker.heartbeat.interval.ms") / 1000
        pause_s = interval_s
        eager_s = _EAGER_S  # until the next beat while it is fenced, doubled each time
        while True:
            with suppress(TimeoutError):
                await within(pause_s, self._kick.wait())
            self._kick.clear()
            response = await self._beat()
            is_stale = _is_stale(response)
            if is_stale:
                await self._register_anew()
            if is_stale or (response is not None and response.is_fenced):
                pause_s, eager_s = eager_s, min(2 * eager_s, interval_s)
            else:
                pause_s, eager_s = interval_s, _EAGER_S

    async def _beat(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse | None:
        request = BrokerHeartbeatRequest(
            broker_id=self._broker.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._broker.quorum.applied_offset,
            want_fence=False,
            want_shut_down=want_shut_down,
            offline_log_dirs=tuple(
                directory.directory_id
                for directory in self._broker.replicas.directories
                if directory.offline_because is not None and directory.directory_id != NO_ID
            ),
        )
        try:
            response = await self._broker.controllers.call(request, _HEARTBEAT_VERSION)
        except KafkaError:
            return None
        assert isinstance(response, BrokerHeartbeatResponse)
        return response

    async def shut_down(self) -> None:
        """Leadership moves away first, if others can take it and the time allows."""
        if (
            not self._broker.config.flag("controlled.shutdown.enable")
            or len(self._broker.image.live_brokers()) < 2
        ):
            return
        clock = self._broker.clock
        deadline = clock.monotonic() + _SHUTDOWN_S
        heard = clock.monotonic()
        # Without a controller nobody can take over, however long this broker stays.
        while clock.monotonic() < min(deadline, heard + _NO_CONTROLLER_S):
            response = None
            with suppress(TimeoutError):
                response = await within(_NO_CONTROLLER_S, self._beat(want_shut_down=True))
            if response is not None:
                heard = clock.monotonic()
                if response.should_shut_down:
                    return
            await asyncio.sleep(_EAGER_S)
        self._broker.events.warn("controlled shutdown took too long; stopping as it is")


def _is_stale(response: BrokerHeartbeatResponse | None) -> bool:
    return response is not None and response.error_code == ErrorCode.STALE_BROKER_EPOCH


def _why_fenced(response: BrokerHeartbeatResponse | None) -> str:
    """As far as the answer to a heartbeat tells."""
    if response is None:
        return "no controller answers"
    if response.error_code != ErrorCode.NONE:
        return error_name(response.error_code)
    if not response.is_caught_up:
        return "its metadata is behind"
    return "its log directories are offline" if response.is_fenced else "its metadata does not say so yet"

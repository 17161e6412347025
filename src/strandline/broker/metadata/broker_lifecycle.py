"""A broker's lifecycle in the cluster: registration, heartbeats, fencing, controlled shutdown."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError, error_name
from strandline.base.waiting import within
from strandline.broker.metadata.controller_channel import ControllerChannel
from strandline.broker.metadata.raft_node import RaftNode
from strandline.broker.node_context import NodeContext
from strandline.broker.nodes import is_gone
from strandline.controller.features import SUPPORTED_FEATURES
from strandline.storage.directory import NO_ID, LogDirectory
from strandline.wire.api.k62_broker_registration import BrokerRegistrationRequest, Feature, Listener
from strandline.wire.api.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.records.metadata import BrokerEndpoint

_REGISTRATION_VERSION: Final = 4
_HEARTBEAT_VERSION: Final = 1
_EAGER_S: Final = 0.02
# A start that waits longer than this logs the reason.
_SAY_S: Final = 5.0
# It is the same in Kafka: 5 minutes at most, without a setting.
_SHUTDOWN_S: Final = 300.0
_NO_CONTROLLER_S: Final = 2.0
_PROBE_S: Final = 0.5
# Refusals that retries do not change, with advice.
_FATAL: Final = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "the log directories belong to another cluster: point controller.quorum.voters "
    "or controller.quorum.bootstrap.servers to the controllers of that one, or give the node empty directories and run "
    "`strandline format --cluster-id ID` with the id of this one",
    ErrorCode.UNSUPPORTED_VERSION: "the cluster uses features that this version does not have: run the version that "
    "the other nodes run",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "the user that this node logs in as may not act for the cluster: name it "
    "in super.users of every node, or allow it CLUSTER_ACTION on the cluster",
    ErrorCode.INVALID_REGISTRATION: "see the controller's log for the reason",
}


class CannotJoin(Exception):
    """The cluster refuses this broker, and no retry can change that; the text has the reason."""


class BrokerLifecycle:
    def __init__(
        self,
        node: NodeContext,
        channel: ControllerChannel,
        quorum: RaftNode,
        cluster_id: str,
        directories: Sequence[LogDirectory],
    ) -> None:
        self._node = node
        self._channel = channel
        self._quorum = quorum
        self._cluster_id = cluster_id
        self._directories = directories
        self._endpoints: tuple[BrokerEndpoint, ...] = ()
        self._previous_epoch = -1
        self._incarnation = node.random.uuid()
        self._kick = asyncio.Event()
        self.epoch = -1

    def heartbeat_soon(self) -> None:
        """Sends a heartbeat soon: to a new controller, which otherwise misses it, or to report a failed disk."""
        self._kick.set()

    async def register(self, endpoints: tuple[BrokerEndpoint, ...], previous_epoch: int) -> None:
        """Registers this broker; returns when the cluster has accepted it. Raises CannotJoin if it never will."""
        self._endpoints = endpoints
        self._previous_epoch = previous_epoch
        await self._register()

    async def _register(self) -> None:
        request = BrokerRegistrationRequest(
            broker_id=self._node.node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self._incarnation,
            listeners=tuple(
                Listener(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in self._endpoints
            ),
            features=tuple(
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ),
            rack=self._node.config.optional_text("broker.rack"),
            log_dirs=tuple(d.directory_id for d in self._directories if d.offline_because is None),
            previous_broker_epoch=self._previous_epoch,
        )
        logged = ""
        while True:
            try:
                response = await self._channel.call(request, _REGISTRATION_VERSION)
            except KafkaError as error:
                code = error.code
            else:
                code = response.error_code
                if code == ErrorCode.NONE:
                    self.epoch = response.broker_epoch
                    return
            if code in _FATAL:
                why = _FATAL[ErrorCode(code)]
                raise CannotJoin(
                    f"the controllers refuse broker {self._node.node_id} ({error_name(code)}): {why}"
                )
            if logged != error_name(code):
                logged = error_name(code)
                self._node.events.warn("registration is not accepted yet", error=logged)
            await asyncio.sleep(0.1)

    async def caught_up(self) -> None:
        """Returns when this node's image has its own registration, and so all records before it."""
        clock, quorum = self._node.clock, self._quorum
        say_at = clock.monotonic() + _SAY_S
        while (offset := quorum.applied_offset) <= self.epoch:
            if clock.monotonic() >= say_at:
                say_at = math.inf
                leader = quorum.leader_id
                self._node.events.warn("metadata is behind", offset=offset, wanted=self.epoch, leader=leader)
            await asyncio.sleep(0.002)

    async def unfenced(self) -> None:
        """Returns when the controller has unfenced this broker and the image has the change."""
        clock, pause_s = self._node.clock, _EAGER_S
        interval_s = self._node.config.int("broker.heartbeat.interval.ms") / 1000
        say_at, logged = clock.monotonic() + _SAY_S, ""
        while True:
            response = await self._heartbeat()
            state = self._node.image.brokers.get(self._node.node_id)
            if state is not None and state.epoch == self.epoch and not state.fenced:
                return
            if _is_stale(response):
                await self._register_again()
                await self.caught_up()
                continue
            if clock.monotonic() >= say_at and logged != (why := _why_fenced(response)):
                self._node.events.warn("the controllers do not unfence this broker yet", why=why)
                logged = why
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, interval_s)

    async def _register_again(self) -> None:
        """Registers again, because the registration was removed, or replaced by another broker's."""
        self._node.events.warn("registering again: the registration has been replaced", epoch=self.epoch)
        self._incarnation = self._node.random.uuid()
        await self._register()

    async def run(self) -> None:
        interval_s = self._node.config.int("broker.heartbeat.interval.ms") / 1000
        pause_s = interval_s
        eager_s = _EAGER_S  # until the next heartbeat while fenced, doubled each time
        while True:
            with suppress(TimeoutError):
                await within(pause_s, self._kick.wait())
            self._kick.clear()
            response = await self._heartbeat()
            is_stale = _is_stale(response)
            if is_stale:
                await self._register_again()
            if is_stale or (response is not None and response.is_fenced):
                pause_s, eager_s = eager_s, min(2 * eager_s, interval_s)
            else:
                pause_s, eager_s = interval_s, _EAGER_S

    async def _heartbeat(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse | None:
        request = BrokerHeartbeatRequest(
            broker_id=self._node.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._quorum.applied_offset,
            want_fence=False,
            want_shut_down=want_shut_down,
            offline_log_dirs=tuple(
                directory.directory_id
                for directory in self._directories
                if directory.offline_because is not None and directory.directory_id != NO_ID
            ),
        )
        try:
            response = await self._channel.call(request, _HEARTBEAT_VERSION)
        except KafkaError:
            return None
        assert isinstance(response, BrokerHeartbeatResponse)
        return response

    async def shut_down(self) -> None:
        """Shuts down in a controlled way: leadership moves away first, if others can take it and there is time."""
        if (
            not self._node.config.flag("controlled.shutdown.enable")
            or len(self._node.image.live_brokers()) < 2
        ):
            return
        if await self._is_alone():
            self._node.events.info("no other broker is left to take over")
            return
        clock = self._node.clock
        deadline = clock.monotonic() + _SHUTDOWN_S
        heard = clock.monotonic()
        # Without a controller no broker can take over, however long this one waits.
        while clock.monotonic() < min(deadline, heard + _NO_CONTROLLER_S):
            response = None
            with suppress(TimeoutError):
                response = await within(_NO_CONTROLLER_S, self._heartbeat(want_shut_down=True))
            if response is not None:
                heard = clock.monotonic()
                if response.should_shut_down:
                    return
            elif await self._is_alone():
                return
            await asyncio.sleep(_EAGER_S)
        self._node.events.warn("controlled shutdown took too long; stopping as it is")

    async def _is_alone(self) -> bool:
        """Returns True if the addresses of all other brokers refuse connections."""
        own, name = self._node.node_id, self._node.config.inter_broker_listener_name
        others = [each for each in self._node.image.live_brokers() if each.node_id != own]
        for broker in others:
            endpoint = broker.endpoint(name)
            if endpoint is None or not await is_gone(
                self._node.network, endpoint.host, endpoint.port, _PROBE_S
            ):
                return False
        return True


def _is_stale(response: BrokerHeartbeatResponse | None) -> bool:
    return response is not None and response.error_code == ErrorCode.STALE_BROKER_EPOCH


def _why_fenced(response: BrokerHeartbeatResponse | None) -> str:
    """Returns why this broker is fenced, by the response to a heartbeat."""
    if response is None:
        return "no controller responds"
    if response.error_code != ErrorCode.NONE:
        return error_name(response.error_code)
    if not response.is_caught_up:
        return "its metadata is behind"
    return "its log directories are offline" if response.is_fenced else "its metadata does not say so yet"

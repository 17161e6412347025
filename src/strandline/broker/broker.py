"""A node: starts the parts, follows the metadata, and stops the parts. Nothing else in `broker` knows this class."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.base.ids import TopicPartition
from strandline.broker.broker_parts import BrokerParts, Ports
from strandline.broker.jobs import start_jobs_of_brokers, start_jobs_of_every_node
from strandline.broker.logs.recovery import close_logs, start_recovery
from strandline.broker.metadata.controller_registration import SECURITY_PROTOCOLS, register_controller
from strandline.broker.metadata.publisher import MetadataDelta
from strandline.broker.metadata.raft_bootstrap import (
    has_others,
    take_directories,
)
from strandline.broker.security.listener_security import ListenerSecurity
from strandline.broker.server.connection import ClientConnection
from strandline.broker.server.secured_connection import SaslClientConnection, TlsClientConnection
from strandline.config import BrokerConfig, InvalidConfig, Listener
from strandline.ports.network import ListeningSocket as OpenListener
from strandline.ports.tls import TlsError
from strandline.telemetry.events import Events
from strandline.wire.records.metadata import BrokerEndpoint


class Broker(BrokerParts):
    def __init__(self, ports: Ports, config: BrokerConfig, events: Events) -> None:
        super().__init__(ports, config, events)
        self._listeners: list[OpenListener] = []
        self._is_following = False  # True while replicas follow the image
        self._is_abandoned = False

    # Starting

    async def start(self) -> None:
        """Returns when clients can be served. A start that fails releases the directories and listeners."""
        try:
            await self._start()
        except (Exception, asyncio.CancelledError):
            await self.abandon()
            raise

    async def _start(self) -> None:
        take_directories(self.node, self._directories)
        online = [directory for directory in self._directories if directory.offline_because is None]
        self.cluster_id = online[0].cluster_id
        self._build()
        self.connections.hold_all()
        endpoints = await self._listen()
        self.quorum.start()
        start_jobs_of_every_node(self)
        if self.config.is_controller:
            self.tasks.start(register_controller(self.node, self.channel))
        if not self.config.is_broker:
            self.health.is_started = True
            return
        epochs = {directory.clean_epoch for directory in online}
        previous = epochs.pop() if len(epochs) == 1 else None
        await self.lifecycle.register(endpoints, -1 if previous is None else previous)
        await self.lifecycle.caught_up()
        self._check_access()
        self.replicas.load()
        self._follow_image()
        await self.lifecycle.unfenced()
        self.tasks.start(self.lifecycle.run())
        self.tasks.start(self.directory_assignments.run())
        self.groups.load_what_is_there()
        self.transactions.load_what_is_there()
        start_jobs_of_brokers(self)
        self.cleaner.start()
        self.scrubber.start()
        start_recovery(self.node, self.replicas)
        self.connections.serve_all()
        self.health.is_started = True

    def _check_access(self) -> None:
        """Warns if ACLs have no effect; raises InvalidConfig if they would lock out every user."""
        if self.authorizer is None:
            if self.image.acls:
                self.node.events.warn(
                    "ACLs have no effect: authorizer.class.name is empty, and every user may do everything",
                    rules=len(self.image.acls),
                )
        elif not self.authorizer.can_anybody_alter():
            raise InvalidConfig(
                "super.users",
                None,
                "There is an authorizer, but no super user, and no rule that lets somebody change the rules: everybody "
                "would be locked out. Name somebody: super.users=User:admin",
            )

    # Listening

    async def _listen(self) -> tuple[BrokerEndpoint, ...]:
        """Opens the listeners; returns the endpoints to advertise, with the port in use where port 0 was requested."""
        ports = {}
        network = self.node.network
        for listener in self.config.broker_listeners:
            security = await self._security_of(listener)
            acceptor = self._acceptor(listener, security)
            opened = await network.listen(
                listener.host, listener.port, acceptor, None if security is None else security.tls
            )
            self._listeners.append(opened)
            ports[listener.name] = opened.port
        if has_others(self.config) or not self.config.is_broker:
            for listener in self.config.controller_listeners:
                security = await self._security_of(listener)
                acceptor = self._acceptor(listener, security, is_controller=True)
                tls = None if security is None else security.tls
                self._listeners.append(await network.listen(listener.host, listener.port, acceptor, tls))
        return tuple(
            BrokerEndpoint(
                name=listener.name,
                host=listener.host or "localhost",
                port=listener.port or ports[listener.name],
                security_protocol=SECURITY_PROTOCOLS[listener.protocol],
            )
            for listener in self.config.advertised_listeners
        )

    async def _security_of(self, listener: Listener) -> ListenerSecurity | None:
        """Returns the security of a listener with TLS or SASL; None for other listeners."""
        if listener.protocol == "PLAINTEXT":
            return None
        security = ListenerSecurity(self.node, listener, self.token_keys)
        await security.prepare()
        self.secured.append(security)
        return security

    def _acceptor(
        self, listener: Listener, security: ListenerSecurity | None, *, is_controller: bool = False
    ) -> Callable[[], ClientConnection]:
        """Returns a function that makes the connection object of each client."""
        server, name = self._server, listener.name
        if security is None:
            return lambda: ClientConnection(server, name, is_controller_listener=is_controller)
        kind = SaslClientConnection if security.has_sasl else TlsClientConnection
        return lambda: kind(server, name, security, is_controller_listener=is_controller)

    @property
    def endpoints(self) -> tuple[BrokerEndpoint, ...]:
        return self.image.brokers[self.node_id].endpoints

    # Stopping

    async def stop(self) -> None:
        """Shuts down cleanly: all logs are synced, and the next start need not check them."""
        self.health.is_stopping = True
        if self.config.is_broker:
            await self.lifecycle.shut_down()
        await self._stop_working()
        clean = await close_logs(self.node, self.replicas, self.flusher)
        await self.maintenance.checkpoint_recovery_points()
        await self.maintenance.checkpoint_high_watermarks()
        await self.maintenance.checkpoint_log_starts()
        clean = await self._close_metadata() and clean
        self.files.close()
        marked = 0
        for directory in self._directories:
            if clean and directory.offline_because is None and self.replicas.is_repaired(directory):
                try:
                    directory.mark_clean(self._broker_epoch())
                    marked += 1
                except OSError as error:
                    self.replicas.disk_error(directory, error)
            directory.release()
        self.node.events.info("stopped", clean=marked == len(self._directories))

    async def abandon(self) -> None:
        """Releases the directories and listeners after a start that failed, or instead of `stop` when the state cannot
        be trusted.

        Nothing is marked as clean, so the next start checks the logs.
        """
        if self._is_abandoned:
            return
        self._is_abandoned = True
        try:
            if self.is_built:
                await self._stop_working()
                await self._close_metadata()
            self.files.close()
        finally:
            for directory in self._directories:
                directory.release()

    async def _stop_working(self) -> None:
        for listener in self._listeners:
            listener.close()
        self.connections.close_all()
        self.groups.stop()
        self.transactions.stop()
        self.replica_fetcher.stop()
        if self.controller_runtime is not None:
            self.controller_runtime.stop()
        await self.tasks.close()
        self.channel.stop()

    async def _close_metadata(self) -> bool:
        try:
            await self.quorum.stop()
        except OSError as error:
            self.node.events.error("closing the metadata log", error=error)
            return False
        return True

    # Following the metadata

    def _image_changed(self, delta: MetadataDelta) -> None:
        """Notifies the parts that follow the image, which is consistent again."""
        if delta.has_configs:
            self.fetch_policy.configs_changed()
            self.client_telemetry.configs_changed()
            self.connections.serve_held()  # max.connections may be higher now
            self._follow_certificates()
        if delta.has_quotas:
            self.client_quotas.follow()
        for node_id in delta.fenced:
            self.suspected_brokers.fenced(node_id)
        if not self._is_following:
            return
        for node_id in delta.fenced:
            self.isr.fenced(node_id)
        for topic in delta.removed_topics:
            for index in list(self.replicas.by_topic.get(topic, {})):
                self.replica_fetcher.unfollow(TopicPartition(topic, index))
            self.replicas.topic_removed(topic)
            self.groups.topic_removed(topic)
            self.transactions.topic_removed(topic)
        if delta.has_configs:
            self.replicas.configs_changed()
        for topic, index in delta.partitions:
            self._follow(topic, index)

    def _follow_certificates(self) -> None:
        for security in self.secured:
            security.follow_configs()
        if self.secured:
            try:
                self.node_networks.follow_configs()
            except TlsError as error:
                self.node.events.error("certificates not replaced", error=error)

    def _follow_image(self) -> None:
        """Gives replicas the roles that they have in the image, from now on."""
        self._is_following = True
        for topic, index in self.replicas.partitions_here():
            self._follow(topic, index)

    def _follow(self, topic: str, index: int) -> None:
        replica = self.replicas.partition_changed(topic, index)
        is_sound = replica is not None and (
            replica.directory.offline_because is None and not self.corrupt_replicas.holds(replica)
        )
        if replica is not None and is_sound:
            self.replica_fetcher.follow(replica)
        else:
            self.replica_fetcher.unfollow(TopicPartition(topic, index))
        self.groups.leadership_changed(topic, index)
        self.transactions.leadership_changed(topic, index)
        if replica is None and self.replicas.follows(topic, index):
            self.follower_log_opener.open_soon(TopicPartition(topic, index))

    def _controller_changed(self) -> None:
        if self.is_built:
            self.channel.changed()
            self.lifecycle.heartbeat_soon()

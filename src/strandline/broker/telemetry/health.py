"""The health of a node for `/readyz`, and the reason if it is not ready."""

from __future__ import annotations

from strandline.broker.metadata.broker_lifecycle import BrokerLifecycle
from strandline.broker.metadata.raft_node import RaftNode
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replicas import Replicas

# The numbers of Kafka's gauge BrokerState.
NOT_RUNNING, STARTING, RECOVERY, RUNNING = 0, 1, 2, 3
PENDING_CONTROLLED_SHUTDOWN, SHUTTING_DOWN = 6, 7


class NodeHealth:
    """Reads the state of a node. It is ready when it is registered, unfenced and has the cluster's metadata, and when
    no log that it leads waits for recovery after an unclean shutdown."""

    def __init__(
        self, node: NodeContext, quorum: RaftNode, lifecycle: BrokerLifecycle, replicas: Replicas
    ) -> None:
        self._node = node
        self._quorum = quorum
        self._lifecycle = lifecycle
        self._replicas = replicas
        self.is_started = False
        self.is_stopping = False

    def why_not_ready(self) -> str | None:
        """Returns the reason, or None if the node is ready."""
        if self.is_stopping:
            return "the node is stopping"
        if self._quorum.leader_id < 0:
            return "the metadata quorum has no leader"
        if not self._node.config.is_broker:
            return None
        if self._lifecycle.epoch < 0:
            return "the broker is not registered"
        if self._quorum.applied_offset <= self._lifecycle.epoch:
            return "the metadata is behind the broker's own registration"
        state = self._node.image.brokers.get(self._node.node_id)
        if state is None or state.fenced:
            return "the broker is fenced"
        if not self.is_started:
            return "the node is starting"
        waiting = self.unrecovered_count()
        return None if not waiting else f"{waiting} logs that this broker leads wait for recovery"

    def unrecovered_count(self) -> int:
        """Returns the number of led logs that were not opened since an unclean shutdown of their directory."""
        count = 0
        for directory in self._replicas.directories:
            if directory.is_clean or directory.offline_because is not None:
                continue
            for topic, index in self._replicas.partitions_in(directory):
                known = self._node.image.topics.get(topic)
                state = None if known is None else known.partitions.get(index)
                is_led = state is not None and state.leader == self._node.node_id
                count += is_led and self._replicas.get(topic, index) is None
        return count

    def broker_state(self) -> int:
        """Returns Kafka's number for the state of the node."""
        if self.is_stopping:
            return PENDING_CONTROLLED_SHUTDOWN
        if not self.is_started:
            return STARTING
        return RECOVERY if self.unrecovered_count() else RUNNING

"""The cluster's metadata: a function of the records of the metadata log.

The controller plans on an image with every appended record; a broker responds from one with every committed record.
Both are this class, and both change only by `apply`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from strandline.wire.records import metadata as records
from strandline.wire.records.framing import ForeignRecord
from strandline.wire.schema import Message

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
BROKER_LOGGER_RESOURCE: Final = 8
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32

# The directory of a replica whose broker has not reported it (KIP-858).
UNASSIGNED: Final = bytes(16)
# The directory of a replica that its broker has lost: here, because its log is damaged.
LOST: Final = (1).to_bytes(16, "big")


@dataclass(slots=True, kw_only=True)
class PartitionState:
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    directories: tuple[bytes, ...] = ()
    eligible_leaders: tuple[int, ...] = ()
    last_known_leaders: tuple[int, ...] = ()
    recovery_state: int = 0

    def directory_of(self, broker_id: int) -> bytes:
        """Returns the directory of the broker's replica; UNASSIGNED if it has not reported one, or has no replica."""
        known = dict(zip(self.replicas, self.directories, strict=False))
        return known.get(broker_id, UNASSIGNED)

    def directories_with(self, broker_id: int, directory_id: bytes) -> tuple[bytes, ...]:
        return tuple(directory_id if r == broker_id else self.directory_of(r) for r in self.replicas)


@dataclass(slots=True, kw_only=True)
class TopicState:
    name: str
    topic_id: bytes
    partitions: dict[int, PartitionState] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class BrokerRegistration:
    node_id: int
    epoch: int
    incarnation: bytes
    endpoints: tuple[records.BrokerEndpoint, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...]
    features: tuple[records.BrokerFeature, ...] = ()

    def has_online(self, directory_id: bytes) -> bool:
        """Returns True unless the directory is known to have failed. A broker that has not reported its directories, or
        that of the replica, is believed to be well."""
        return directory_id == UNASSIGNED or not self.log_dirs or directory_id in self.log_dirs

    def endpoint(self, listener: str) -> records.BrokerEndpoint | None:
        return next((e for e in self.endpoints if e.name == listener), None)


# Records that change no Metadata response: the controller's sign of life every half a second, the next block of
# producer ids, credentials and quotas.
_UNSEEN: Final = (
    records.NoOpRecord,
    records.ProducerIdsRecord,
    records.UserScramCredentialRecord,
    records.RemoveUserScramCredentialRecord,
    records.DelegationTokenRecord,
    records.RemoveDelegationTokenRecord,
    records.ClientQuotaRecord,
)

# The types and names of the entities that a client quota is for, in the order of the types; None is the default.
QuotaKey = tuple[tuple[str, str | None], ...]


class ClusterImage:
    def __init__(self) -> None:
        self.version = 0
        # These count the records that changed a rule of access, and those that changed a quota.
        self.acls_version = 0
        self.quotas_version = 0
        self.clear()

    def clear(self) -> None:
        """Empties the image, before a snapshot is applied."""
        self.brokers: dict[int, BrokerRegistration] = {}
        self.controllers: dict[int, records.RegisterControllerRecord] = {}
        self.topics: dict[str, TopicState] = {}
        self.topics_by_id: dict[bytes, TopicState] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        # Credentials by mechanism number and user name (KIP-554), and tokens by id (KIP-48).
        self.scram_credentials: dict[tuple[int, str], records.UserScramCredentialRecord] = {}
        self.delegation_tokens: dict[str, records.DelegationTokenRecord] = {}
        self.acls: dict[bytes, records.AccessControlEntryRecord] = {}  # by their ids
        self.client_quotas: dict[QuotaKey, dict[str, float]] = {}
        self.foreign: dict[bytes, None] = {}  # records of unknown kinds, in order
        # The version counts the records that changed something in Metadata responses; caches compare it.
        self.version += 1
        self.acls_version += 1
        self.quotas_version += 1

    def live_brokers(self) -> list[BrokerRegistration]:
        return [self.brokers[node_id] for node_id in sorted(self.brokers) if not self.brokers[node_id].fenced]

    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())

    def apply(self, record: Message) -> None:
        if not isinstance(record, _UNSEEN):
            self.version += 1
        match record:
            case records.TopicRecord():
                topic = TopicState(name=record.name, topic_id=record.topic_id)
                self.topics[record.name] = self.topics_by_id[record.topic_id] = topic
            case records.PartitionRecord():
                self.topics_by_id[record.topic_id].partitions[record.partition_id] = _new_partition(record)
            case records.PartitionChangeRecord():
                _change_partition(self.topics_by_id[record.topic_id].partitions[record.partition_id], record)
            case records.RemoveTopicRecord():
                topic = self.topics_by_id.pop(record.topic_id)
                del self.topics[topic.name]
                self.configs.pop((TOPIC_RESOURCE, topic.name), None)
            case records.ConfigRecord():
                self._apply_config(record)
            case records.RegisterBrokerRecord():
                self.brokers[record.broker_id] = _new_broker(record)
            case records.RegisterControllerRecord():
                self.controllers[record.controller_id] = record
            case records.UnregisterBrokerRecord():
                self.brokers.pop(record.broker_id, None)
            case records.FenceBrokerRecord():
                self.brokers[record.id].fenced = True
            case records.UnfenceBrokerRecord():
                self.brokers[record.id].fenced = False
            case records.BrokerRegistrationChangeRecord():
                self._apply_registration_change(record)
            case records.FeatureLevelRecord():
                self._apply_feature(record)
            case records.ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case records.UserScramCredentialRecord():
                self.scram_credentials[record.mechanism, record.name] = record
            case records.RemoveUserScramCredentialRecord():
                self.scram_credentials.pop((record.mechanism, record.name), None)
            case records.DelegationTokenRecord():
                self.delegation_tokens[record.token_id] = record
            case records.RemoveDelegationTokenRecord():
                self.delegation_tokens.pop(record.token_id, None)
            case records.AccessControlEntryRecord():
                self.acls[record.id] = record
                self.acls_version += 1
            case records.RemoveAccessControlEntryRecord():
                self.acls.pop(record.id, None)
                self.acls_version += 1
            case records.ClientQuotaRecord():
                self._apply_quota(record)
            case records.ClearElrRecord():
                self._clear_eligible(record.topic_name)
            case ForeignRecord():
                # Each of these records describes a state, so that of two equal ones the later one is enough.
                self.foreign.pop(record.value, None)
                self.foreign[record.value] = None
            case _:
                pass  # metadata transactions and _UNSEEN change nothing that is handled here

    def _apply_config(self, record: records.ConfigRecord) -> None:
        key = (record.resource_type, record.resource_name)
        overrides = self.configs.setdefault(key, {})
        if record.value is None:
            overrides.pop(record.name, None)
        else:
            overrides[record.name] = record.value
        if not overrides:
            del self.configs[key]

    def _apply_quota(self, record: records.ClientQuotaRecord) -> None:
        entities = sorted(record.entity, key=lambda each: each.entity_type)
        key = tuple((each.entity_type, each.entity_name) for each in entities)
        quotas = self.client_quotas.setdefault(key, {})
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if not quotas:
            del self.client_quotas[key]
        self.quotas_version += 1

    def _apply_registration_change(self, record: records.BrokerRegistrationChangeRecord) -> None:
        broker = self.brokers[record.broker_id]
        if record.fenced:
            broker.fenced = record.fenced > 0
        if record.in_controlled_shutdown:
            broker.in_controlled_shutdown = record.in_controlled_shutdown > 0
        if record.log_dirs:
            broker.log_dirs = record.log_dirs

    def _clear_eligible(self, topic_name: str) -> None:
        """Clears the eligible leader replicas of one topic, or of all."""
        topics = [self.topics[topic_name]] if topic_name else self.topics.values()
        for topic in topics:
            for partition in topic.partitions.values():
                partition.eligible_leaders = partition.last_known_leaders = ()

    def _apply_feature(self, record: records.FeatureLevelRecord) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)


def _new_partition(record: records.PartitionRecord) -> PartitionState:
    return PartitionState(
        replicas=record.replicas,
        in_sync=record.isr,
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        removing=record.removing_replicas,
        adding=record.adding_replicas,
        directories=record.directories,
        eligible_leaders=record.eligible_leader_replicas or (),
        last_known_leaders=record.last_known_elr or (),
        recovery_state=record.leader_recovery_state,
    )


def _change_partition(partition: PartitionState, record: records.PartitionChangeRecord) -> None:
    if record.isr is not None:
        partition.in_sync = record.isr
    if record.replicas is not None:
        partition.replicas = record.replicas
    if record.removing_replicas is not None:
        partition.removing = record.removing_replicas
    if record.adding_replicas is not None:
        partition.adding = record.adding_replicas
    if record.directories is not None:
        partition.directories = record.directories
    if record.eligible_leader_replicas is not None:
        partition.eligible_leaders = record.eligible_leader_replicas
    if record.last_known_elr is not None:
        partition.last_known_leaders = record.last_known_elr
    if record.leader_recovery_state >= 0:
        partition.recovery_state = record.leader_recovery_state
    if record.leader != NO_LEADER_CHANGE:
        partition.leader = record.leader
        partition.leader_epoch += 1
    partition.partition_epoch += 1


def _new_broker(record: records.RegisterBrokerRecord) -> BrokerRegistration:
    return BrokerRegistration(
        node_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation=record.incarnation_id,
        endpoints=record.end_points,
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=record.log_dirs,
        features=record.features,
    )

"""Records of the metadata log (__cluster_metadata-0)."""

from __future__ import annotations

from strandline.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    bytes_,
    field,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class BrokerEndpoint(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)
    security_protocol: int = field(int16)


class BrokerFeature(Struct):
    name: str = field(string)
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class RegisterBrokerRecord(Message, key=0, versions="0-4", flexible="0+"):
    broker_id: int = field(int32)
    is_migrating_zk_broker: bool = field(boolean, "2+", default=False)
    incarnation_id: bytes = field(uuid)
    broker_epoch: int = field(int64)
    end_points: tuple[BrokerEndpoint, ...] = field(array(BrokerEndpoint))
    features: tuple[BrokerFeature, ...] = field(array(BrokerFeature))
    rack: str | None = field(string, nullable="0+")
    fenced: bool = field(boolean, default=True)
    in_controlled_shutdown: bool = field(boolean, "1+", default=False)
    log_dirs: tuple[bytes, ...] = field(array(uuid), "3+", default=(), tag=0, tagged="3+")
    cordoned_log_dirs: tuple[bytes, ...] | None = field(
        array(uuid), "4+", nullable="4+", default=None, tag=1, tagged="4+"
    )


class UnregisterBrokerRecord(Message, key=1, versions="0", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64)


class TopicRecord(Message, key=2, versions="0", flexible="0+"):
    name: str = field(string)
    topic_id: bytes = field(uuid)


class PartitionRecord(Message, key=3, versions="0-2", flexible="0+"):
    partition_id: int = field(int32, default=-1)
    topic_id: bytes = field(uuid)
    replicas: tuple[int, ...] = field(array(int32))
    isr: tuple[int, ...] = field(array(int32))
    removing_replicas: tuple[int, ...] = field(array(int32))
    adding_replicas: tuple[int, ...] = field(array(int32))
    leader: int = field(int32, default=-1)
    leader_recovery_state: int = field(int8, default=0, tag=0, tagged="0+")
    leader_epoch: int = field(int32, default=-1)
    partition_epoch: int = field(int32, default=-1)
    directories: tuple[bytes, ...] = field(array(uuid), "1+", default=())
    eligible_leader_replicas: tuple[int, ...] | None = field(
        array(int32), "2+", nullable="2+", default=None, tag=1, tagged="2+"
    )
    last_known_elr: tuple[int, ...] | None = field(
        array(int32), "2+", nullable="2+", default=None, tag=2, tagged="2+"
    )


class ConfigRecord(Message, key=4, versions="0", flexible="0+"):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    name: str = field(string)
    value: str | None = field(string, nullable="0+")


class PartitionChangeRecord(Message, key=5, versions="0-2", flexible="0+"):
    partition_id: int = field(int32, default=-1)
    topic_id: bytes = field(uuid)
    isr: tuple[int, ...] | None = field(array(int32), nullable="0+", default=None, tag=0, tagged="0+")
    leader: int = field(int32, default=-2, tag=1, tagged="0+")
    replicas: tuple[int, ...] | None = field(array(int32), nullable="0+", default=None, tag=2, tagged="0+")
    removing_replicas: tuple[int, ...] | None = field(
        array(int32), nullable="0+", default=None, tag=3, tagged="0+"
    )
    adding_replicas: tuple[int, ...] | None = field(
        array(int32), nullable="0+", default=None, tag=4, tagged="0+"
    )
    leader_recovery_state: int = field(int8, default=-1, tag=5, tagged="0+")
    directories: tuple[bytes, ...] | None = field(
        array(uuid), "1+", nullable="1+", default=None, tag=8, tagged="1+"
    )
    eligible_leader_replicas: tuple[int, ...] | None = field(
        array(int32), "2+", nullable="2+", default=None, tag=6, tagged="2+"
    )
    last_known_elr: tuple[int, ...] | None = field(
        array(int32), "2+", nullable="2+", default=None, tag=7, tagged="2+"
    )


class FenceBrokerRecord(Message, key=7, versions="0", flexible="0+"):
    id: int = field(int32)
    epoch: int = field(int64)


class UnfenceBrokerRecord(Message, key=8, versions="0", flexible="0+"):
    id: int = field(int32)
    epoch: int = field(int64)


class RemoveTopicRecord(Message, key=9, versions="0", flexible="0+"):
    topic_id: bytes = field(uuid)


class DelegationTokenRecord(Message, key=10, versions="0", flexible="0+"):
    owner: str = field(string)
    requester: str = field(string)
    renewers: tuple[str, ...] = field(array(string))
    issue_timestamp: int = field(int64)
    max_timestamp: int = field(int64)
    expiration_timestamp: int = field(int64)
    token_id: str = field(string)


class UserScramCredentialRecord(Message, key=11, versions="0", flexible="0+"):
    name: str = field(string)
    mechanism: int = field(int8)
    salt: bytes = field(bytes_)
    stored_key: bytes = field(bytes_)
    server_key: bytes = field(bytes_)
    iterations: int = field(int32)


class FeatureLevelRecord(Message, key=12, versions="0", flexible="0+"):
    name: str = field(string)
    feature_level: int = field(int16)


class QuotaEntity(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable="0+")


class ClientQuotaRecord(Message, key=14, versions="0", flexible="0+"):
    entity: tuple[QuotaEntity, ...] = field(array(QuotaEntity))
    key: str = field(string)
    value: float = field(float64)
    remove: bool = field(boolean)


class ProducerIdsRecord(Message, key=15, versions="0", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    next_producer_id: int = field(int64)


class BrokerRegistrationChangeRecord(Message, key=17, versions="0-3", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64)
    fenced: int = field(int8, default=0, tag=0, tagged="0+")
    in_controlled_shutdown: int = field(int8, "1+", default=0, tag=1, tagged="1+")
    log_dirs: tuple[bytes, ...] = field(array(uuid), "2+", default=(), tag=2, tagged="2+")
    cordoned_log_dirs: tuple[bytes, ...] | None = field(
        array(uuid), "3+", nullable="3+", default=None, tag=3, tagged="3+"
    )


class AccessControlEntryRecord(Message, key=18, versions="0", flexible="0+"):
    id: bytes = field(uuid)
    resource_type: int = field(int8)
    resource_name: str = field(string)
    pattern_type: int = field(int8)
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


class RemoveAccessControlEntryRecord(Message, key=19, versions="0", flexible="0+"):
    id: bytes = field(uuid)


class NoOpRecord(Message, key=20, versions="0", flexible="0+"):
    pass


class RemoveUserScramCredentialRecord(Message, key=22, versions="0", flexible="0+"):
    name: str = field(string)
    mechanism: int = field(int8)


class BeginTransactionRecord(Message, key=23, versions="0", flexible="0+"):
    name: str | None = field(string, nullable="0+", default=None, tag=0, tagged="0+")


class EndTransactionRecord(Message, key=24, versions="0", flexible="0+"):
    pass


class AbortTransactionRecord(Message, key=25, versions="0", flexible="0+"):
    reason: str | None = field(string, nullable="0+", default=None, tag=0, tagged="0+")


class RemoveDelegationTokenRecord(Message, key=26, versions="0", flexible="0+"):
    token_id: str = field(string)


class ControllerEndpoint(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)
    security_protocol: int = field(int16)


class ControllerFeature(Struct):
    name: str = field(string)
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class RegisterControllerRecord(Message, key=27, versions="0", flexible="0+"):
    controller_id: int = field(int32)
    incarnation_id: bytes = field(uuid)
    zk_migration_ready: bool = field(boolean)
    end_points: tuple[ControllerEndpoint, ...] = field(array(ControllerEndpoint))
    features: tuple[ControllerFeature, ...] = field(array(ControllerFeature))


class ClearElrRecord(Message, key=28, versions="0", flexible="0+"):
    topic_name: str = field(string)

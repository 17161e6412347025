"""The Kafka client: producer, consumer and admin on asyncio, for Strandline and Apache Kafka alike.

    async with Producer(bootstrap_servers="localhost:9092") as producer:
        metadata = await producer.send_and_wait("orders", value=b"...")

`strandline.client.sync` has the same clients for code that blocks. Everything that an application needs is here.
Clients and their values are loaded on first use, so that a program which only produces does not pay for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.base.ids import TopicPartition
from strandline.base.lazy_names import lazy_names
from strandline.client.errors import (
    AuthorizationError,
    BufferFullError,
    ClosedError,
    CommitFailedError,
    ConfigError,
    ConnectionFailedError,
    DeliveryTimeoutError,
    ErrorCode,
    FencedInstanceError,
    GroupError,
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    NoOffsetError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecordTooLargeError,
    SerializationError,
    TopicExistsError,
    TransactionAbortedError,
    UnknownTopicError,
    UnresolvedBootstrapError,
    UnsupportedVersionError,
    WrongClusterError,
)

if TYPE_CHECKING:
    from strandline.client.admin.access import Acl as Acl
    from strandline.client.admin.access import AclFilter as AclFilter
    from strandline.client.admin.admin import Admin as Admin
    from strandline.client.admin.calls import PartialFailureError as PartialFailureError
    from strandline.client.admin.cluster import ClusterDescription as ClusterDescription
    from strandline.client.admin.cluster import QuorumDescription as QuorumDescription
    from strandline.client.admin.configs import ConfigChange as ConfigChange
    from strandline.client.admin.configs import ConfigEntry as ConfigEntry
    from strandline.client.admin.configs import ConfigResource as ConfigResource
    from strandline.client.admin.configs import ConfigSource as ConfigSource
    from strandline.client.admin.configs import Operation as Operation
    from strandline.client.admin.configs import ResourceType as ResourceType
    from strandline.client.admin.groups import CommittedOffset as CommittedOffset
    from strandline.client.admin.groups import GroupDescription as GroupDescription
    from strandline.client.admin.groups import GroupListing as GroupListing
    from strandline.client.admin.groups import MemberDescription as MemberDescription
    from strandline.client.admin.producers import ActiveProducer as ActiveProducer
    from strandline.client.admin.topics import CreatedTopic as CreatedTopic
    from strandline.client.admin.topics import ListedOffset as ListedOffset
    from strandline.client.admin.topics import NewTopic as NewTopic
    from strandline.client.consumer.consumer import Consumer as Consumer
    from strandline.client.consumer.group.callbacks import RebalanceListener as RebalanceListener
    from strandline.client.consumer.group.member import GroupMetadata as GroupMetadata
    from strandline.client.consumer.log_offsets import OffsetAndTimestamp as OffsetAndTimestamp
    from strandline.client.consumer.record_decoder import ConsumerRecord as ConsumerRecord
    from strandline.client.consumer.subscription import OffsetAndMetadata as OffsetAndMetadata
    from strandline.client.deadletter.handler import DeadLetters as DeadLetters
    from strandline.client.deadletter.handler import Output as Output
    from strandline.client.net.metadata import PartitionInfo as PartitionInfo
    from strandline.client.net.metadata import TopicInfo as TopicInfo
    from strandline.client.producer.batch import RecordMetadata as RecordMetadata
    from strandline.client.producer.batch import RecordPromise as RecordPromise
    from strandline.client.producer.producer import Producer as Producer

__all__ = [
    "Acl",
    "AclFilter",
    "ActiveProducer",
    "Admin",
    "AuthorizationError",
    "BufferFullError",
    "ClosedError",
    "ClusterDescription",
    "CommitFailedError",
    "CommittedOffset",
    "ConfigChange",
    "ConfigEntry",
    "ConfigError",
    "ConfigResource",
    "ConfigSource",
    "ConnectionFailedError",
    "Consumer",
    "ConsumerRecord",
    "CreatedTopic",
    "DeadLetters",
    "DeliveryTimeoutError",
    "ErrorCode",
    "FencedInstanceError",
    "GroupDescription",
    "GroupError",
    "GroupListing",
    "GroupMetadata",
    "IllegalStateError",
    "InvalidTopicError",
    "KafkaError",
    "KafkaTimeoutError",
    "ListedOffset",
    "MemberDescription",
    "NewTopic",
    "NoOffsetError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "Operation",
    "OutOfOrderSequenceError",
    "Output",
    "PartialFailureError",
    "PartitionInfo",
    "Producer",
    "ProducerFencedError",
    "QuorumDescription",
    "RebalanceListener",
    "RecordMetadata",
    "RecordPromise",
    "RecordTooLargeError",
    "ResourceType",
    "SerializationError",
    "TopicExistsError",
    "TopicInfo",
    "TopicPartition",
    "TransactionAbortedError",
    "UnknownTopicError",
    "UnresolvedBootstrapError",
    "UnsupportedVersionError",
    "WrongClusterError",
]

_HOMES: Final = {
    "Acl": "admin.access",
    "AclFilter": "admin.access",
    "ActiveProducer": "admin.producers",
    "Admin": "admin.admin",
    "ClusterDescription": "admin.cluster",
    "CommittedOffset": "admin.groups",
    "ConfigChange": "admin.configs",
    "ConfigEntry": "admin.configs",
    "ConfigResource": "admin.configs",
    "ConfigSource": "admin.configs",
    "Consumer": "consumer.consumer",
    "ConsumerRecord": "consumer.record_decoder",
    "CreatedTopic": "admin.topics",
    "DeadLetters": "deadletter.handler",
    "GroupDescription": "admin.groups",
    "GroupListing": "admin.groups",
    "GroupMetadata": "consumer.group.member",
    "ListedOffset": "admin.topics",
    "MemberDescription": "admin.groups",
    "NewTopic": "admin.topics",
    "OffsetAndMetadata": "consumer.subscription",
    "OffsetAndTimestamp": "consumer.log_offsets",
    "Operation": "admin.configs",
    "Output": "deadletter.handler",
    "PartialFailureError": "admin.calls",
    "PartitionInfo": "net.metadata",
    "Producer": "producer.producer",
    "QuorumDescription": "admin.cluster",
    "RebalanceListener": "consumer.group.callbacks",
    "RecordMetadata": "producer.batch",
    "RecordPromise": "producer.batch",
    "ResourceType": "admin.configs",
    "TopicInfo": "net.metadata",
}

if not TYPE_CHECKING:  # a checker that sees this would let any name pass
    __getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

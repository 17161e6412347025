# Made from the asyncio classes by `make docs`; change those.
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import pyarrow

from strandline.base.ids import TopicPartition
from strandline.client.admin.access import Acl, AclFilter, QuotaEntity, ScramCredential
from strandline.client.admin.cluster import (
    ClusterDescription,
    Features,
    LogDirDescription,
    QuorumDescription,
    Reassignment,
)
from strandline.client.admin.configs import ConfigChange, ConfigEntry, ConfigResource, ResourceType
from strandline.client.admin.groups import CommittedOffset, GroupDescription, GroupListing
from strandline.client.admin.lag import GroupLagDescription
from strandline.client.admin.producers import ActiveProducer, TransactionDescription, TransactionListing
from strandline.client.admin.tokens import DelegationToken
from strandline.client.admin.topics import CreatedTopic, ListedOffset, NewTopic
from strandline.client.arguments import ConfigValue
from strandline.client.consumer.group.member import GroupMetadata
from strandline.client.consumer.log_offsets import OffsetAndTimestamp
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import KafkaError
from strandline.client.net.connections import Node
from strandline.client.net.metadata import PartitionInfo, TopicInfo
from strandline.client.sync.blocking import BlockingClient
from strandline.wire.api.k51_alter_user_scram_credentials import ScramCredentialUpsertion

class AdminCalls(BlockingClient):
    def group_lag(
        self, group_ids: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> dict[str, GroupLagDescription]:
        """Returns the lag of groups, or of all groups that have committed something; those that do not exist are left
        out."""
    def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout: float | None = None
    ) -> list[GroupListing]:
        """Returns the groups of all brokers: each broker lists the groups that it coordinates."""
    def describe_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None
    ) -> dict[str, GroupDescription]:
        """Returns the groups with their members."""
    def delete_groups(self, group_ids: Iterable[str], *, timeout: float | None = None) -> None:
        """Deletes groups that have no members."""
    def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, CommittedOffset]:
        """Returns the committed offsets of a group: all, or those of the given partitions that have one."""
    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset | int],
        *,
        timeout: float | None = None,
    ) -> None:
        """Commits offsets for a group that has no members."""
    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> None:
        """Deletes a group's offsets of these partitions."""
    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> dict[str, CreatedTopic]:
        """Creates topics; with `validate_only` it only says whether it would."""
    def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, ConfigValue] | None = None,
        timeout: float | None = None,
    ) -> CreatedTopic:
        """Creates one topic, and returns its id, partitions and settings."""
    def delete_topics(self, names: Iterable[str], *, timeout: float | None = None) -> None:
        """Deletes topics with all of their records."""
    def list_topics(self, *, include_internal: bool = False, timeout: float | None = None) -> list[str]:
        """Returns the names of all topics."""
    def describe_all_topics(self, *, timeout: float | None = None) -> list[TopicInfo]:
        """Returns all topics with their partitions, internal ones too, by name."""
    def describe_topics(self, names: Iterable[str], *, timeout: float | None = None) -> dict[str, TopicInfo]:
        """Returns the topics with their partitions."""
    def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, list[tuple[int, ...]]] | None = None,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Raises the number of partitions of topics to these; `assignments` names the replicas of the new ones."""
    def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Deletes the records before these offsets (-1: all of them); returns the log start offsets that result."""
    def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        *,
        is_read_committed: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Returns the first offset at or after each timestamp, or at EARLIEST, LATEST or MAX_TIMESTAMP; -1 if there is
        none."""
    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Returns the settings by resource and name; all of them, or those with the given names."""
    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Changes single settings and leaves the others as they are (KIP-339)."""
    def list_config_resources(
        self, types: Iterable[ResourceType] = (), *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """Returns all resources that have settings of their own, of the given kinds or of all."""
    def describe_cluster(
        self, *, include_fenced: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        """Returns the brokers of the cluster, fenced ones on request."""
    def describe_features(self, *, timeout: float | None = None) -> Features:
        """Returns the feature levels that are finalized, and those that are supported."""
    def update_features(
        self,
        levels: Mapping[str, int],
        *,
        kind: Literal["upgrade", "safe-downgrade", "unsafe-downgrade"] = "upgrade",
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Changes the finalized levels of features."""
    def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        election: Literal["preferred", "unclean"] = "preferred",
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elects leaders of the given partitions, or of all. A partition that has the right leader already has
        ELECTION_NOT_NEEDED, which is no failure."""
    def reassign_partitions(
        self, replicas: Mapping[TopicPartition, Iterable[int] | None], *, timeout: float | None = None
    ) -> None:
        """Moves partitions to other replicas; None cancels a move that is under way."""
    def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Returns the partitions that are being moved, of the given ones or of all."""
    def describe_log_dirs(
        self,
        node_ids: Iterable[int] | None = None,
        *,
        topics: Iterable[str] | None = None,
        timeout: float | None = None,
    ) -> dict[int, tuple[LogDirDescription, ...]]:
        """Returns the log directories of the given brokers, or of all, with the sizes of their replicas."""
    def describe_quorum(self, *, timeout: float | None = None) -> QuorumDescription:
        """Returns the controllers' own log: its leader, and how far the others are."""
    def add_raft_voter(
        self,
        voter_id: int,
        directory_id: bytes,
        listeners: Iterable[tuple[str, str, int]],
        *,
        timeout: float | None = None,
    ) -> None:
        """Makes a controller a voter; its listeners are (name, host, port)."""
    def remove_raft_voter(self, voter_id: int, directory_id: bytes, *, timeout: float | None = None) -> None:
        """Takes a controller out of the voters."""
    def unregister_broker(self, node_id: int, *, timeout: float | None = None) -> None:
        """Has the controllers forget a broker that is stopped for good."""
    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...]]:
        """Returns the producers that the leaders of these partitions remember."""
    def list_transactions(
        self, *, states: Iterable[str] = (), producer_ids: Iterable[int] = (), timeout: float | None = None
    ) -> list[TransactionListing]:
        """Returns the transactions of all brokers: each broker lists those that it coordinates."""
    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None
    ) -> dict[str, TransactionDescription]:
        """Returns the transactions of these transactional ids."""
    def fence_producers(self, transactional_ids: Iterable[str], *, timeout: float | None = None) -> None:
        """Fences the producers of these transactional ids, and aborts their open transactions."""
    def abort_transaction(
        self,
        partition: TopicPartition,
        *,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        timeout: float | None = None,
    ) -> None:
        """Ends a transaction that hangs in one partition because its coordinator has forgotten it (KIP-664)."""
    def describe_acls(self, wanted: AclFilter | None = None, *, timeout: float | None = None) -> list[Acl]:
        """Returns the rules that match a filter, or all."""
    def create_acls(self, acls: Iterable[Acl], *, timeout: float | None = None) -> None:
        """Creates rules of who may do what."""
    def delete_acls(self, filters: Iterable[AclFilter], *, timeout: float | None = None) -> list[Acl]:
        """Deletes the rules that the filters match, and returns them."""
    def describe_client_quotas(
        self, entity_types: Iterable[str] = (), *, timeout: float | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Returns the quotas by entity, of those that have all of the given types."""
    def alter_client_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Sets quotas by entity and name; None removes one."""
    def describe_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> dict[str, tuple[ScramCredential, ...]]:
        """Returns the SCRAM credentials of these users, or of all."""
    def alter_scram_credentials(
        self,
        *,
        upsertions: Iterable[ScramCredentialUpsertion] = (),
        deletions: Iterable[tuple[str, int]] = (),
        timeout: float | None = None,
    ) -> None:
        """Sets credentials (already salted and hashed) and removes others, by user and mechanism."""
    def create_token(
        self,
        *,
        owner: str | None = None,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = -1,
        timeout: float | None = None,
    ) -> DelegationToken:
        """Creates a token of the user that asks, or of `owner`; -1 leaves its lifetime to the brokers."""
    def describe_tokens(
        self, owners: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> list[DelegationToken]:
        """Returns the tokens of these owners, or all that the user may see."""
    def renew_token(self, hmac: bytes, *, period_ms: int = -1, timeout: float | None = None) -> int:
        """Lets a token live for another period, and returns when it ends then."""
    def expire_token(self, hmac: bytes, *, period_ms: int = -1, timeout: float | None = None) -> int:
        """Ends a token after a period, or at once with -1, and returns when it ends."""
    def brokers(self) -> tuple[Node, ...]:
        """Returns the brokers that the last metadata named, by id."""

class ConsumerCalls(BlockingClient):
    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these partitions, without a group's help."""
    def unsubscribe(self) -> None:
        """Leaves the group, and reads nothing any more."""
    def assignment(self) -> set[TopicPartition]:
        """Returns the partitions that are read now."""
    def subscription(self) -> set[str]:
        """Returns the topics that are subscribed to."""
    def pause(self, *partitions: TopicPartition) -> None:
        """Keeps polls from returning records of these partitions until they are resumed; they stay assigned."""
    def resume(self, *partitions: TopicPartition) -> None:
        """Has polls return records of these partitions again."""
    def paused(self) -> set[TopicPartition]:
        """Returns the partitions that are paused."""
    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Moves the position: the next poll reads from here."""
    def fetch_until(self, partition: TopicPartition, offset: int | None) -> None:
        """Fetches nothing from this offset on, except records that come in one batch with earlier ones; polls return
        those all the same. None takes that back; a partition that is assigned again has no such offset."""
    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Moves the position to the log start; of all partitions if none is named."""
    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Moves the position to the end; of all partitions if none is named."""
    def seek_to_timestamp(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Moves the position to the first record at or after this time, or to the end if there is none."""
    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """Returns the offset that is read next; it is looked up first if necessary."""
    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Returns the group's committed offsets of these partitions, or None where there is none."""
    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the log start offsets of these partitions."""
    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the high watermarks, or with isolation.level=read_committed the last stable offsets."""
    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Returns the first record at or after each time, or None where there is none."""
    def lag(self, partition: TopicPartition) -> int | None:
        """Returns the offsets from the position to the readable end at the last fetch; None before the first."""
    def partitions_for(self, topic: str, timeout: float | None = None) -> list[TopicPartition]:
        """Returns the partitions of a topic."""
    def poll(self, timeout: float | None = ..., max_records: int | None = None) -> list[ConsumerRecord]:
        """Returns the records that are there, or the first that come within `timeout` seconds; at most
        max.poll.records. With None it waits until there are some, with 0 it does not wait."""
    def set_batch_filter(self, is_wanted: Callable[[bytes], bool] | None) -> None:
        """Has polls pass over batches whose uncompressed bytes the function refuses, as if they had been read."""
    def getmany(
        self, timeout: float | None = ..., max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Returns the records of `poll`, by partition."""
    def getone(self) -> ConsumerRecord:
        """Returns the next record; waits for it without a limit."""
    def getone_nowait(self) -> ConsumerRecord | None:
        """Returns the next record that `getone` or an iteration has polled already, or None if there is none."""
    def poll_table(
        self,
        timeout: float | None = ...,
        *,
        max_rows: int = ...,
        max_bytes: int = ...,
        with_timestamp_type: bool = False,
    ) -> pyarrow.RecordBatch:
        """Returns the records of whole batches as a pyarrow RecordBatch: topic, partition, offset, timestamp, key,
        value and headers, and on request the timestamp's type. Rows may be more than `max_rows` by those of the last
        batch. Deserializers do not apply."""
    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commits these offsets, or those of all records that were given so far, and waits until that is done.

        An offset is the next to be read. Raises CommitFailedError if the group has moved on without this member."""
    @property
    def group_metadata(self) -> GroupMetadata:
        """The membership that a transactional producer needs for send_offsets_to_transaction."""
    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Has a member of a classic group join again; the new protocol leaves that to the coordinator."""
    def metrics(self) -> dict[str, float]:
        """Counters by Kafka's names, and the lag of each partition."""

class ProducerCalls(BlockingClient):
    def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """Returns the partitions of a topic, with their leaders; waits up to max.block.ms."""
    def metrics(self) -> dict[str, float]:
        """Counts since the start, by Kafka's names where it has one."""
    def init_transactions(self) -> None:
        """Takes the transactional.id over, which ends a transaction that another producer left open under it."""
    def send_offsets_to_transaction(self, offsets: Mapping[Any, Any], group: Any) -> None:
        """Commits a consumer's offsets with the transaction. `offsets` are by TopicPartition, as numbers or objects
        with offset, leader_epoch and metadata; `group` is a group id or a consumer's group metadata."""

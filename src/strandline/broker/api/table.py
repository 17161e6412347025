"""The one list of APIs that this broker answers: key, versions, and the file that has the handler.

A handler's module is imported on its first request, so that a start does not pay for what nobody asks. A module has
either `handle(broker, context, request) -> response`, which gets and gives version-free messages, or
`handle_raw(broker, context)`, which has to do with the bytes itself: on the hot path it walks them, and an answer that
may be large it encodes elsewhere. Either may return an awaitable: a coroutine holds up the connection's next request, a
future does not; nor does a `Later`, which `handle_raw` may return. Where a whole request can fail while it waits,
`refuse(request, error) -> response` says so in the words of its API. What `first_load(broker, request)` gives is waited
for before the request is handled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from importlib import import_module
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from strandline.base.errors import KafkaError
from strandline.broker.server.connection import Answer, Outcome, RequestContext
from strandline.broker.server.pending_response import Body, Later
from strandline.wire.codec import DecodeError, decode, encode
from strandline.wire.schema import Message, Request

if TYPE_CHECKING:
    from strandline.broker.broker import Broker


class Api(NamedTuple):
    key: int
    name: str
    version_min: int
    version_max: int
    flexible_from: int  # version_max + 1 where no version is
    module: str
    serves: str = "broker"  # which listeners: broker, controller or both


API_VERSIONS: Final = 18

TABLE: Final = {
    api.key: api
    for api in (
        Api(0, "Produce", 3, 13, 9, "k00_produce"),
        Api(1, "Fetch", 4, 18, 12, "k01_fetch", "both"),
        Api(2, "ListOffsets", 1, 11, 6, "k02_list_offsets"),
        Api(3, "Metadata", 0, 13, 9, "k03_metadata"),
        Api(8, "OffsetCommit", 2, 10, 8, "k08_offset_commit"),
        Api(9, "OffsetFetch", 1, 10, 6, "k09_offset_fetch"),
        Api(10, "FindCoordinator", 0, 6, 3, "k10_find_coordinator"),
        Api(11, "JoinGroup", 0, 9, 6, "k11_join_group"),
        Api(12, "Heartbeat", 0, 4, 4, "k12_heartbeat"),
        Api(13, "LeaveGroup", 0, 5, 4, "k13_leave_group"),
        Api(14, "SyncGroup", 0, 5, 4, "k14_sync_group"),
        Api(15, "DescribeGroups", 0, 6, 5, "k15_describe_groups"),
        Api(16, "ListGroups", 0, 5, 3, "k16_list_groups"),
        Api(API_VERSIONS, "ApiVersions", 0, 4, 3, "k18_api_versions", "both"),
        Api(19, "CreateTopics", 2, 7, 5, "k19_create_topics", "both"),
        Api(20, "DeleteTopics", 1, 6, 4, "k20_delete_topics", "both"),
        Api(21, "DeleteRecords", 0, 2, 2, "k21_delete_records"),
        Api(22, "InitProducerId", 0, 5, 2, "k22_init_producer_id"),
        Api(23, "OffsetForLeaderEpoch", 2, 4, 4, "k23_offset_for_leader_epoch"),
        Api(24, "AddPartitionsToTxn", 0, 5, 3, "k24_add_partitions_to_txn"),
        Api(25, "AddOffsetsToTxn", 0, 4, 3, "k25_add_offsets_to_txn"),
        Api(26, "EndTxn", 0, 5, 3, "k26_end_txn"),
        Api(27, "WriteTxnMarkers", 1, 2, 1, "k27_write_txn_markers"),
        Api(28, "TxnOffsetCommit", 0, 5, 3, "k28_txn_offset_commit"),
        Api(29, "DescribeAcls", 1, 3, 2, "k29_describe_acls", "both"),
        Api(30, "CreateAcls", 1, 3, 2, "k30_create_acls", "both"),
        Api(31, "DeleteAcls", 1, 3, 2, "k31_delete_acls", "both"),
        Api(32, "DescribeConfigs", 1, 4, 4, "k32_describe_configs"),
        Api(33, "AlterConfigs", 0, 2, 2, "k33_alter_configs", "both"),
        Api(35, "DescribeLogDirs", 1, 5, 2, "k35_describe_log_dirs"),
        Api(37, "CreatePartitions", 0, 3, 2, "k37_create_partitions", "both"),
        Api(42, "DeleteGroups", 0, 2, 2, "k42_delete_groups"),
        Api(43, "ElectLeaders", 0, 2, 2, "k43_elect_leaders", "both"),
        Api(44, "IncrementalAlterConfigs", 0, 1, 1, "k44_incremental_alter_configs", "both"),
        Api(45, "AlterPartitionReassignments", 0, 1, 0, "k45_alter_partition_reassignments", "both"),
        Api(46, "ListPartitionReassignments", 0, 0, 0, "k46_list_partition_reassignments", "both"),
        Api(47, "OffsetDelete", 0, 0, 1, "k47_offset_delete"),
        Api(48, "DescribeClientQuotas", 0, 1, 1, "k48_describe_client_quotas"),
        Api(52, "Vote", 0, 2, 0, "k52_vote", "controller"),
        Api(53, "BeginQuorumEpoch", 0, 1, 1, "k53_begin_quorum_epoch", "controller"),
        Api(54, "EndQuorumEpoch", 0, 1, 1, "k54_end_quorum_epoch", "controller"),
        Api(55, "DescribeQuorum", 0, 2, 0, "k55_describe_quorum", "both"),
        Api(56, "AlterPartition", 2, 3, 0, "k56_alter_partition", "controller"),
        Api(57, "UpdateFeatures", 0, 2, 0, "k57_update_features", "both"),
        Api(58, "Envelope", 0, 0, 0, "k58_envelope", "controller"),
        Api(59, "FetchSnapshot", 0, 1, 0, "k59_fetch_snapshot", "controller"),
        Api(60, "DescribeCluster", 0, 2, 0, "k60_describe_cluster", "both"),
        Api(61, "DescribeProducers", 0, 0, 0, "k61_describe_producers"),
        Api(62, "BrokerRegistration", 0, 4, 0, "k62_broker_registration", "controller"),
        Api(63, "BrokerHeartbeat", 0, 2, 0, "k63_broker_heartbeat", "controller"),
        Api(64, "UnregisterBroker", 0, 0, 0, "k64_unregister_broker", "both"),
        Api(65, "DescribeTransactions", 0, 0, 0, "k65_describe_transactions"),
        Api(66, "ListTransactions", 0, 2, 0, "k66_list_transactions"),
        Api(67, "AllocateProducerIds", 0, 0, 0, "k67_allocate_producer_ids", "controller"),
        Api(68, "ConsumerGroupHeartbeat", 0, 1, 0, "k68_consumer_group_heartbeat"),
        Api(69, "ConsumerGroupDescribe", 0, 1, 0, "k69_consumer_group_describe"),
        Api(70, "ControllerRegistration", 0, 0, 0, "k70_controller_registration", "controller"),
        Api(73, "AssignReplicasToDirs", 0, 0, 0, "k73_assign_replicas_to_dirs", "controller"),
        Api(74, "ListConfigResources", 0, 1, 0, "k74_list_config_resources"),
        Api(75, "DescribeTopicPartitions", 0, 0, 0, "k75_describe_topic_partitions"),
        Api(80, "AddRaftVoter", 0, 1, 0, "k80_add_raft_voter", "both"),
        Api(81, "RemoveRaftVoter", 0, 0, 0, "k81_remove_raft_voter", "both"),
        Api(82, "UpdateRaftVoter", 0, 0, 0, "k82_update_raft_voter", "controller"),
    )
}

FLEXIBLE: Final = frozenset(
    (api.key, version) for api in TABLE.values() for version in range(api.flexible_from, api.version_max + 1)
)

Handle = Callable[["Broker", RequestContext], Answer]
Refuse = Callable[[Any, KafkaError], Message]
FirstLoad = Callable[["Broker", Any], asyncio.Task[None] | None]


class Handlers:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.flexible = FLEXIBLE
        self._loaded: dict[int, Handle] = {}
        # By key, version and whether it came to a controller's listener: what is known to be served.
        self._served: dict[tuple[int, int, bool], Handle] = {}

    def handle(self, context: RequestContext) -> Answer:
        asked = (context.api_key, context.api_version, context.connection.is_controller_listener)
        handle = self._served.get(asked)
        if handle is None:
            handle = self._find(*asked)
        return handle(self._broker, context)

    def _find(self, api_key: int, api_version: int, is_controller_listener: bool) -> Handle:
        api = TABLE.get(api_key)
        if api is None:
            raise DecodeError(f"a request with the unknown API key {api_key}")
        if api.serves != "both" and (api.serves == "controller") != is_controller_listener:
            raise DecodeError(f"{api.name} is not served on this listener")
        if not api.version_min <= api_version <= api.version_max:
            if api_key == API_VERSIONS:
                return _list_versions
            raise DecodeError(
                f"{api.name} in version {api_version}; {api.version_min} to {api.version_max} are known"
            )
        if api_key not in self._loaded:
            module = import_module(f"strandline.broker.api.{api.module}")
            self._loaded[api_key] = (
                module.handle_raw if hasattr(module, "handle_raw") else _by_message(module)
            )
        handle = self._served[api_key, api_version, is_controller_listener] = self._loaded[api_key]
        return handle


def _list_versions(_: Broker, context: RequestContext) -> Answer:
    """For ApiVersions in a version that is not known: in version 0, which every client can read, what it may use
    (KIP-511)."""
    from strandline.broker.api.k18_api_versions import answer_unknown_version

    context.api_version = 0
    return (encode(answer_unknown_version(), 0),)


def _by_message(module: Any) -> Handle:
    """Wraps a handler of messages: decodes its request, encodes its response."""
    request_class: type[Request] = module.REQUEST
    handle: Callable[[Broker, RequestContext, Any], Any] = module.handle
    refuse: Refuse | None = getattr(module, "refuse", None)
    first_load: FirstLoad | None = getattr(module, "first_load", None)

    def handle_bytes(broker: Broker, context: RequestContext) -> Answer:
        request = decode(request_class, context.api_version, context.body, context.position)
        return handle_message(broker, context, request)

    def handle_message(broker: Broker, context: RequestContext, request: Request) -> Answer:
        load = None if first_load is None else first_load(broker, request)
        if load is not None:
            return after(load, lambda: handle_message(broker, context, request))
        response = handle(broker, context, request)
        if isinstance(response, Message):
            return (encode(response, context.api_version),)
        if isinstance(response, Later):
            return response if response.given is None else response.given
        if isinstance(response, CoroutineType):
            return _encoded_later(response, request, context.api_version, refuse)
        assert isinstance(response, asyncio.Future)
        if response.done():
            return (encode(response.result(), context.api_version),)
        return _encoded_when_done(response, context.api_version)

    return handle_bytes


def _encoded_when_done(response: asyncio.Future[Message], version: int) -> asyncio.Future[Body | None]:
    encoded: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()

    def encode_it(done: asyncio.Future[Message]) -> None:
        if done.cancelled() or encoded.done():
            return
        try:
            encoded.set_result((encode(done.result(), version),))
        except Exception as error:
            encoded.set_exception(error)

    response.add_done_callback(encode_it)
    return encoded


async def after(load: asyncio.Task[None], handle: Callable[[], Answer]) -> Outcome:
    """What is answered once a load has ended; one that failed shows in the answer."""
    await asyncio.shield(load)
    answer = handle()
    if isinstance(answer, Awaitable) and not isinstance(answer, asyncio.Future):
        return await answer
    return answer


async def _encoded_later(
    response: Coroutine[Any, Any, Message], request: Request, version: int, refuse: Refuse | None
) -> Body:
    try:
        message = await response
    except KafkaError as error:
        if refuse is None:
            raise
        message = refuse(request, error)
    return (encode(message, version),)

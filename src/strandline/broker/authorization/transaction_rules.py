"""Rules for requests of producers: transactions and producer ids."""

from __future__ import annotations

from typing import Any, Final

from strandline.base.acls import AclOperation, AclResource
from strandline.base.errors import ErrorCode
from strandline.base.topics import INTERNAL_TOPICS
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.authorization.cluster_rules import cluster_denied
from strandline.broker.authorization.reduction import (
    Reduction,
    blank,
    denied,
    denied_as_whole,
    mirrored,
    without_denied,
)
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from strandline.wire.api.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from strandline.wire.api.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from strandline.wire.api.k26_end_txn import EndTxnRequest
from strandline.wire.api.k27_write_txn_markers import WriteTxnMarkersRequest
from strandline.wire.api.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTopic,
)
from strandline.wire.api.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from strandline.wire.api.k66_list_transactions import ListTransactionsRequest, ListTransactionsResponse

_OP = AclOperation
_ID_CODE: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_GROUP_CODE: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_TOPIC_CODE: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_FROM_BROKERS_FROM: Final = 4


def allows_id(access: RequestAccess, operation: int, transactional_id: str, *, is_act: bool = True) -> bool:
    return access.allows(operation, AclResource.TRANSACTIONAL_ID, transactional_id, is_act=is_act)


def init_producer_id(access: RequestAccess, request: InitProducerIdRequest) -> Reduction | None:
    """Allows a producer id without transactions to every user who may write to some topic (KIP-679)."""
    code = ErrorCode.NONE
    if request.transactional_id is not None:
        if not allows_id(access, _OP.WRITE, request.transactional_id):
            code = _ID_CODE
    elif not access.rights.allows_some(_OP.WRITE, AclResource.TOPIC) and not access.allows_on_cluster(
        _OP.IDEMPOTENT_WRITE
    ):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if code == ErrorCode.NONE:
        return None
    return denied(blank(InitProducerIdResponse, error_code=code, producer_epoch=-1))


def add_partitions_to_txn(access: RequestAccess, request: AddPartitionsToTxnRequest) -> Reduction | None:
    """Allows partitions of AddPartitionsToTxn, whose later versions come from brokers only. Of a client's partitions
    all are added or none."""
    if access.version >= _FROM_BROKERS_FROM:
        return None if access.allows_on_cluster(_OP.CLUSTER_ACTION) else cluster_denied(request)
    topics = request.v3_and_below_topics
    if not allows_id(access, _OP.WRITE, request.v3_and_below_transactional_id):
        return denied(_added(topics, lambda *_: _ID_CODE))
    is_allowed = {
        topic.name: topic.name not in INTERNAL_TOPICS and access.allows_on_topic(_OP.WRITE, topic.name)
        for topic in topics
    }
    if all(is_allowed.values()):
        return None

    def code(name: str, index: int) -> int:
        if not is_allowed[name]:
            return _TOPIC_CODE
        topic = access.image.topics.get(name)
        if topic is None or index not in topic.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    return denied(_added(topics, code))


def _added(topics: tuple[AddPartitionsToTxnTopic, ...], code: Any) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        throttle_time_ms=0,
        results_by_topic_v3_and_below=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code(topic.name, index)
                    )
                    for index in topic.partitions
                ),
            )
            for topic in topics
        ),
    )


def add_offsets_to_txn(access: RequestAccess, request: AddOffsetsToTxnRequest) -> Reduction | None:
    if not allows_id(access, _OP.WRITE, request.transactional_id):
        return denied_as_whole(request, _ID_CODE)
    if not access.allows_on_group(_OP.READ, request.group_id):
        return denied_as_whole(request, _GROUP_CODE)
    return None


def end_txn(access: RequestAccess, request: EndTxnRequest) -> Reduction | None:
    if allows_id(access, _OP.WRITE, request.transactional_id):
        return None
    return denied_as_whole(request, _ID_CODE)


def write_txn_markers(access: RequestAccess, request: WriteTxnMarkersRequest) -> Reduction | None:
    """Allows brokers, and users who may end a hanging transaction (KIP-664)."""
    if access.allows_on_cluster(_OP.ALTER, is_act=False) or access.allows_on_cluster(_OP.CLUSTER_ACTION):
        return None
    return cluster_denied(request)


def txn_offset_commit(access: RequestAccess, request: TxnOffsetCommitRequest) -> Reduction | None:
    if not allows_id(access, _OP.WRITE, request.transactional_id):
        return denied(_refused_commit(request, _ID_CODE))
    if not access.allows_on_group(_OP.READ, request.group_id):
        return denied(_refused_commit(request, _GROUP_CODE))
    return without_denied(
        request, "topics", lambda topic: access.allows_on_topic(_OP.READ, topic.name), _TOPIC_CODE
    )


def _refused_commit(request: TxnOffsetCommitRequest, code: int) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        throttle_time_ms=0,
        topics=tuple(mirrored(TxnOffsetCommitResponseTopic, topic, code) for topic in request.topics),
    )


def describe_transactions(access: RequestAccess, request: DescribeTransactionsRequest) -> Reduction:
    """Allows transactional ids, and leaves out topics that the user may not describe."""
    reduction = without_denied(
        request,
        "transactional_ids",
        lambda each: allows_id(access, _OP.DESCRIBE, each),
        _ID_CODE,
        response_name="transaction_states",
    )

    def merge(response: DescribeTransactionsResponse | None) -> Any:
        for state in () if response is None else response.transaction_states:
            state.topics = tuple(t for t in state.topics if access.allows_on_topic(_OP.DESCRIBE, t.topic))
        return response if reduction is None else reduction.merge(response)

    return Reduction(request if reduction is None else reduction.request, merge)


def list_transactions(access: RequestAccess, request: ListTransactionsRequest) -> Reduction:
    def merge(response: ListTransactionsResponse) -> ListTransactionsResponse:
        response.transaction_states = tuple(
            each
            for each in response.transaction_states
            if allows_id(access, _OP.DESCRIBE, each.transactional_id, is_act=False)
        )
        return response

    return Reduction(request, merge)

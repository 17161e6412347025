"""Envelope (key 58), version 0: a broker passes on what a client asked of it (KIP-590).

For controllers only. Errors: NOT_CONTROLLER, INVALID_REQUEST for what is not a request that controllers answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k19_create_topics import CreateTopicsRequest
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest
from strandline.wire.api.k33_alter_configs import AlterConfigsRequest
from strandline.wire.api.k37_create_partitions import CreatePartitionsRequest
from strandline.wire.api.k43_elect_leaders import ElectLeadersRequest
from strandline.wire.api.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from strandline.wire.api.k45_alter_partition_reassignments import AlterPartitionReassignmentsRequest
from strandline.wire.api.k46_list_partition_reassignments import ListPartitionReassignmentsRequest
from strandline.wire.api.k57_update_features import UpdateFeaturesRequest
from strandline.wire.api.k58_envelope import EnvelopeRequest, EnvelopeResponse
from strandline.wire.api.k64_unregister_broker import UnregisterBrokerRequest
from strandline.wire.api.k80_add_raft_voter import AddRaftVoterRequest
from strandline.wire.api.k81_remove_raft_voter import RemoveRaftVoterRequest
from strandline.wire.codec import DecodeError, decode_from, encode, encode_into
from strandline.wire.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from strandline.wire.schema import Request

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = EnvelopeRequest

FORWARDED: Final[dict[int, type[Request]]] = {
    cls.API_KEY: cls
    for cls in (
        CreateTopicsRequest,
        DeleteTopicsRequest,
        AlterConfigsRequest,
        CreatePartitionsRequest,
        IncrementalAlterConfigsRequest,
        ElectLeadersRequest,
        AlterPartitionReassignmentsRequest,
        ListPartitionReassignmentsRequest,
        UpdateFeaturesRequest,
        UnregisterBrokerRequest,
        AddRaftVoterRequest,
        RemoveRaftVoterRequest,
    )
}


async def handle(broker: Broker, context: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    data = request.request_data
    try:
        cls = FORWARDED[int.from_bytes(data[:2], "big")]
        version = int.from_bytes(data[2:4], "big")
        header, position = decode_from(RequestHeader, request_header_version(cls.FLEXIBLE, version), data, 0)
        inner, _ = decode_from(cls, version, data, position)
    except (KeyError, DecodeError):
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    context.api_version = version
    try:
        response = await broker.decide_here(inner, version)
    except KafkaError as error:
        return EnvelopeResponse(error_code=error.code)
    finally:
        context.api_version = 0
    answer_header = ResponseHeader(correlation_id=header.correlation_id)
    answer = encode(answer_header, response_header_version(cls.API_KEY, cls.FLEXIBLE, version))
    encode_into(response, version, answer)
    return EnvelopeResponse(response_data=bytes(answer), error_code=ErrorCode.NONE)

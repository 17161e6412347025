"""The APIs of the active controller: each request becomes a plan, whose response waits until its records are
committed."""

from __future__ import annotations

from typing import Any, NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.metadata.controller_runtime import ControllerRuntime
from strandline.broker.metadata.credential_apis import decide_credentials
from strandline.broker.metadata.voter_apis import handle_add_voter, handle_remove_voter
from strandline.controller import (
    acls,
    brokers,
    client_quotas,
    configs,
    directories,
    elections,
    features,
    in_sync,
    reassignments,
    topics,
)
from strandline.controller.producer_ids import plan_allocate_producer_ids
from strandline.quorum.messages import VersionUpgradeRequested
from strandline.security.principal import Principal
from strandline.wire.api.k19_create_topics import (
    CreateTopicsRequest,
)
from strandline.wire.api.k20_delete_topics import (
    DeleteTopicsRequest,
)
from strandline.wire.api.k30_create_acls import CreateAclsRequest
from strandline.wire.api.k31_delete_acls import DeleteAclsRequest
from strandline.wire.api.k33_alter_configs import (
    AlterConfigsRequest,
)
from strandline.wire.api.k37_create_partitions import (
    CreatePartitionsRequest,
)
from strandline.wire.api.k38_create_delegation_token import CreateDelegationTokenRequest
from strandline.wire.api.k39_renew_delegation_token import RenewDelegationTokenRequest
from strandline.wire.api.k40_expire_delegation_token import ExpireDelegationTokenRequest
from strandline.wire.api.k43_elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from strandline.wire.api.k44_incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from strandline.wire.api.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from strandline.wire.api.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from strandline.wire.api.k49_alter_client_quotas import AlterClientQuotasRequest
from strandline.wire.api.k51_alter_user_scram_credentials import AlterUserScramCredentialsRequest
from strandline.wire.api.k56_alter_partition import AlterPartitionRequest, AlterPartitionResponse
from strandline.wire.api.k57_update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from strandline.wire.api.k62_broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from strandline.wire.api.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.api.k64_unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from strandline.wire.api.k67_allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from strandline.wire.api.k70_controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from strandline.wire.api.k73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from strandline.wire.api.k80_add_raft_voter import AddRaftVoterRequest
from strandline.wire.api.k81_remove_raft_voter import RemoveRaftVoterRequest
from strandline.wire.schema import Request


class RequestOrigin(NamedTuple):
    """The sender of a request that the controller decides, and its address."""

    principal: Principal
    host: str
    client_id: str


async def decide_for(
    runtime: ControllerRuntime, request: Request, version: int, origin: RequestOrigin
) -> Any:
    """Returns the response to a user's request, of which the parts that the user may not do are denied. Raises
    NOT_CONTROLLER as `decide` does."""
    authorizer = runtime.authorizer
    if authorizer is None:
        return await _decide_within_quota(runtime, request, version, origin)
    runtime.check_active()
    reduction = authorizer.reduce_for_controller(origin.principal, origin.host, request, version)
    if reduction is None:
        return await _decide_within_quota(runtime, request, version, origin)
    response = None
    if reduction.request is not None:
        response = await _decide_within_quota(runtime, reduction.request, version, origin)
    return reduction.merge(response)


async def _decide_within_quota(
    runtime: ControllerRuntime, request: Request, version: int, origin: RequestOrigin
) -> Any:
    """Returns the response; the quota of changes limits how much of the request is done."""
    quota = runtime.mutation_quota
    reduction = None
    if quota is not None:
        reduction = quota.reduce(origin.principal.name, origin.client_id, request, version)
    if reduction is None:
        return await decide(runtime, request, version, origin.principal)
    response = None
    if reduction.request is not None:
        response = await decide(runtime, reduction.request, version, origin.principal)
    return reduction.merge(response)


async def decide(runtime: ControllerRuntime, request: Request, version: int, principal: Principal) -> Any:
    """Returns the response, without authorization. Raises NOT_CONTROLLER if this is not the active controller, or no
    longer."""
    state = runtime.state
    match request:
        case CreateTopicsRequest():
            return await runtime.commit(
                lambda: topics.plan_create_topics(state.image, state.configs, request, state.random)
            )
        case DeleteTopicsRequest():
            return await runtime.commit(
                lambda: topics.plan_delete_topics(state.image, state.configs, request, version)
            )
        case CreatePartitionsRequest():
            return await runtime.commit(
                lambda: topics.plan_create_partitions(state.image, request, state.random)
            )
        case AlterConfigsRequest():
            return await runtime.commit(
                lambda: configs.plan_alter_configs(state.image, state.configs, request)
            )
        case IncrementalAlterConfigsRequest():
            return await runtime.commit(
                lambda: configs.plan_incremental_alter_configs(state.image, state.configs, request)
            )
        case ElectLeadersRequest():
            return await runtime.commit(
                lambda: elections.plan_elect_leaders(state.image, request, state.rules)
            )
        case AlterPartitionReassignmentsRequest():
            return await runtime.commit(
                lambda: reassignments.plan_alter_reassignments(state.image, request, state.rules)
            )
        case ListPartitionReassignmentsRequest():
            runtime.check_active()
            return reassignments.list_reassignments(state.image, request)
        case UpdateFeaturesRequest():
            return await _update_features(runtime, request, version)
        case (
            AlterUserScramCredentialsRequest()
            | CreateDelegationTokenRequest()
            | RenewDelegationTokenRequest()
            | ExpireDelegationTokenRequest()
        ):
            return await decide_credentials(runtime, request, principal)
        case CreateAclsRequest():
            return await runtime.commit(
                lambda: acls.plan_create_acls(state.image, request, state.random.uuid)
            )
        case DeleteAclsRequest():
            return await runtime.commit(lambda: acls.plan_delete_acls(state.image, request))
        case AlterClientQuotasRequest():
            return await runtime.commit(lambda: client_quotas.plan_alter_client_quotas(state.image, request))
        case AddRaftVoterRequest():
            return await handle_add_voter(runtime.active_quorum(), request)
        case RemoveRaftVoterRequest():
            return await handle_remove_voter(runtime.active_quorum(), request)
        case _:
            return await _decide_for_broker(runtime, request, version)


async def _update_features(
    runtime: ControllerRuntime, request: UpdateFeaturesRequest, version: int
) -> UpdateFeaturesResponse:
    """Updates levels of features. Most levels are records of the controller; the quorum raises that of
    kraft.version."""
    state = runtime.state
    quorum = runtime.active_quorum()
    levels = {update.feature: update.max_version_level for update in request.feature_updates}
    level = levels.get(features.KRAFT_VERSION_FEATURE, 0)
    if level > quorum.core.kraft_version:
        checked = features.plan_update_features(
            state.image, state.configs, request, version, kraft_version=quorum.core.kraft_version
        )
        if checked.response.error_code != ErrorCode.NONE:
            return checked.response
        response = await quorum.request(
            lambda token: VersionUpgradeRequested(token=token, validates_only=request.validate_only)
        )
        if response.error:
            raise KafkaError(ErrorCode[response.error], response.message)
    return await runtime.commit(
        lambda: features.plan_update_features(
            state.image, state.configs, request, version, kraft_version=quorum.core.kraft_version
        )
    )


async def _decide_for_broker(runtime: ControllerRuntime, request: Request, version: int) -> Any:
    """Returns the response to a broker's request about itself, in which an error is the code of the whole response."""
    state = runtime.state
    try:
        match request:
            case BrokerRegistrationRequest():
                return await runtime.register(request)
            case BrokerHeartbeatRequest():
                return await runtime.heartbeat(request)
            case AlterPartitionRequest():
                return await runtime.commit(
                    lambda: in_sync.plan_alter_partition(state.image, request, version, state.rules)
                )
            case ControllerRegistrationRequest():
                await runtime.commit(lambda: brokers.plan_register_controller(state.image, request))
                return ControllerRegistrationResponse(
                    throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None
                )
            case AssignReplicasToDirsRequest():
                return await runtime.commit(
                    lambda: directories.plan_assign(state.image, request, state.rules)
                )
            case AllocateProducerIdsRequest():
                block = await runtime.commit(
                    lambda: plan_allocate_producer_ids(state.image, request.broker_id, request.broker_epoch)
                )
                return AllocateProducerIdsResponse(
                    throttle_time_ms=0,
                    error_code=ErrorCode.NONE,
                    producer_id_start=block.first,
                    producer_id_len=block.size,
                )
            case UnregisterBrokerRequest():
                await runtime.commit(
                    lambda: brokers.plan_unregister(state.image, request.broker_id, state.rules)
                )
                return UnregisterBrokerResponse(
                    throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None
                )
            case _:
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_VERSION,
                    f"Controllers do not serve {type(request).__name__}: send it to a broker.",
                )
    except KafkaError as error:
        if error.code == ErrorCode.NOT_CONTROLLER:
            raise
        return refused_by_controller(request, error)


def refused_by_controller(request: Request, error: KafkaError) -> Any:
    """Returns a response with an error for the whole request, for requests whose response has one."""
    code, message = error.code, error.message
    match request:
        case ElectLeadersRequest():
            return ElectLeadersResponse(throttle_time_ms=0, error_code=code, replica_election_results=())
        case AlterPartitionReassignmentsRequest():
            return AlterPartitionReassignmentsResponse(
                throttle_time_ms=0, error_code=code, error_message=message, responses=()
            )
        case ListPartitionReassignmentsRequest():
            return ListPartitionReassignmentsResponse(
                throttle_time_ms=0, error_code=code, error_message=message, topics=()
            )
        case UpdateFeaturesRequest():
            return UpdateFeaturesResponse(throttle_time_ms=0, error_code=code, error_message=message)
        case _:
            return _refused_for_broker(request, error)


def _refused_for_broker(request: Request, error: KafkaError) -> Any:
    code = error.code
    match request:
        case BrokerRegistrationRequest():
            return BrokerRegistrationResponse(throttle_time_ms=0, error_code=code)
        case BrokerHeartbeatRequest():
            return BrokerHeartbeatResponse(throttle_time_ms=0, error_code=code, should_shut_down=False)
        case AlterPartitionRequest():
            return AlterPartitionResponse(throttle_time_ms=0, error_code=code, topics=())
        case ControllerRegistrationRequest():
            return ControllerRegistrationResponse(
                throttle_time_ms=0, error_code=code, error_message=error.message
            )
        case AssignReplicasToDirsRequest():
            return AssignReplicasToDirsResponse(throttle_time_ms=0, error_code=code, directories=())
        case AllocateProducerIdsRequest():
            return AllocateProducerIdsResponse(
                throttle_time_ms=0, error_code=code, producer_id_start=-1, producer_id_len=0
            )
        case UnregisterBrokerRequest():
            return UnregisterBrokerResponse(throttle_time_ms=0, error_code=code, error_message=error.message)
        case _:
            raise error

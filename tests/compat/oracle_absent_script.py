"""Requests for things that do not exist or are switched off, for `test_oracle_answers`."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.wire.api import k10_find_coordinator as find_coordinator
from strandline.wire.api import k29_describe_acls as describe_acls
from strandline.wire.api import k30_create_acls as create_acls
from strandline.wire.api import k31_delete_acls as delete_acls
from strandline.wire.api import k32_describe_configs as describe_configs
from strandline.wire.api import k48_describe_client_quotas as describe_client_quotas
from strandline.wire.api import k74_list_config_resources as list_config_resources
from tests.compat.oracle_steps import Step, each_version

ANY = 1
LITERAL, ALLOW, READ, TOPIC = 3, 3, 3, 2
BROKER_LOGGER, CLIENT_METRICS = 8, 16
SHARE = 2


def absent_steps() -> Iterator[Step]:
    yield from _access_steps()
    yield from _logger_steps()
    one = find_coordinator.FindCoordinatorRequest(key_type=SHARE, key="no share key")
    several = find_coordinator.FindCoordinatorRequest(key_type=SHARE, coordinator_keys=("no share key",))
    for version, request in ((3, one), (5, several), (6, several)):
        yield Step(
            f"FindCoordinator v{version} of a share group",
            version,
            lambda run, request=request: request,  # type: ignore[misc]
        )


def _access_steps() -> Iterator[Step]:
    """Without an authorizer, and without quotas."""
    described = describe_acls.DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    yield from each_version(describe_acls.DescribeAclsRequest, "DescribeAcls", lambda run: described)
    creation = create_acls.AclCreation(
        resource_type=TOPIC,
        resource_name="main",
        resource_pattern_type=LITERAL,
        principal="User:a",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    created = create_acls.CreateAclsRequest(creations=(creation, creation))
    yield from each_version(create_acls.CreateAclsRequest, "CreateAcls", lambda run: created)
    every = delete_acls.DeleteAclsFilter(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    deleted = delete_acls.DeleteAclsRequest(filters=(every, every))
    yield from each_version(delete_acls.DeleteAclsRequest, "DeleteAcls", lambda run: deleted)
    quotas = describe_client_quotas.DescribeClientQuotasRequest(components=(), strict=False)
    yield from each_version(
        describe_client_quotas.DescribeClientQuotasRequest, "DescribeClientQuotas", lambda run: quotas
    )


def _logger_steps() -> Iterator[Step]:
    for kind in (BROKER_LOGGER, CLIENT_METRICS, 77):
        listed = list_config_resources.ListConfigResourcesRequest(resource_types=(kind,))
        yield Step(f"ListConfigResources of type {kind}", 1, lambda run, listed=listed: listed)  # type: ignore[misc]
    for kind, name in ((BROKER_LOGGER, ""), (BROKER_LOGGER, "42"), (CLIENT_METRICS, "")):
        resource = describe_configs.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        described = describe_configs.DescribeConfigsRequest(resources=(resource,))
        yield Step(
            f"DescribeConfigs of type {kind} and the name {name!r}",
            4,
            lambda run, described=described: described,  # type: ignore[misc]
        )

"""Admin calls about access: ACLs, client quotas, SCRAM credentials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from strandline.client.admin.calls import AdminBase, check, error_from, results_or_raise
from strandline.client.errors import KafkaError
from strandline.wire.api.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse
from strandline.wire.api.k30_create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from strandline.wire.api.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from strandline.wire.api.k48_describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from strandline.wire.api.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from strandline.wire.api.k50_describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from strandline.wire.api.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

ANY: Final = 1  # the number that means "any" in every field of a filter

# A client quota's entity, such as (("user", "alice"), ("client-id", None)); None stands for the default.
QuotaEntity = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """One rule, in Kafka's numbers: resource types (2 topic, 3 group, 4 cluster, 5 transactional id), pattern types
    (3 literal, 4 prefixed), operations (2 all, 3 read, 4 write, …), permissions (2 deny, 3 allow)."""

    resource_type: int
    resource_name: str
    principal: str
    operation: int
    permission: int = 3
    host: str = "*"
    pattern_type: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """A filter of rules; a field that is not set matches any."""

    resource_type: int = ANY
    resource_name: str | None = None
    pattern_type: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY


class ScramCredential(NamedTuple):
    """The mechanism and iterations of a SCRAM credential."""

    mechanism: int  # 1: SCRAM-SHA-256, 2: SCRAM-SHA-512
    iterations: int


class AccessAdmin(AdminBase):
    """The calls about access."""

    async def describe_acls(
        self, wanted: AclFilter | None = None, *, timeout: float | None = None
    ) -> list[Acl]:
        """Returns the rules that match a filter, or all."""
        deadline = self._deadline(timeout)
        acl_filter = wanted or AclFilter()
        request = DescribeAclsRequest(
            resource_type_filter=acl_filter.resource_type,
            resource_name_filter=acl_filter.resource_name,
            pattern_type_filter=acl_filter.pattern_type,
            principal_filter=acl_filter.principal,
            host_filter=acl_filter.host,
            operation=acl_filter.operation,
            permission_type=acl_filter.permission,
        )

        async def once() -> list[Acl]:
            response = await self._call_any_broker(request, DescribeAclsResponse, deadline)
            check(response.error_code, response.error_message, "ACLs")
            return [
                Acl(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    pattern_type=resource.pattern_type,
                    principal=each.principal,
                    host=each.host,
                    operation=each.operation,
                    permission=each.permission_type,
                )
                for resource in response.resources
                for each in resource.acls
            ]

        return await self._retry(once, deadline)

    async def create_acls(self, acls: Iterable[Acl], *, timeout: float | None = None) -> None:
        """Creates rules of who may do what."""
        deadline = self._deadline(timeout)
        created = tuple(acls)
        request = CreateAclsRequest(
            creations=tuple(
                AclCreation(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    resource_pattern_type=each.pattern_type,
                    principal=each.principal,
                    host=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in created
            )
        )

        async def once() -> None:
            response = await self._call_controller(request, CreateAclsResponse, deadline)
            pairs = zip(created, response.results, strict=True)
            results_or_raise(
                {
                    acl: error_from(each.error_code, each.error_message, f"an ACL for {acl.principal}")
                    or True
                    for acl, each in pairs
                }
            )

        await self._retry(once, deadline)

    async def delete_acls(self, filters: Iterable[AclFilter], *, timeout: float | None = None) -> list[Acl]:
        """Deletes the rules that the filters match, and returns them."""
        deadline = self._deadline(timeout)
        request = DeleteAclsRequest(
            filters=tuple(
                DeleteAclsFilter(
                    resource_type_filter=each.resource_type,
                    resource_name_filter=each.resource_name,
                    pattern_type_filter=each.pattern_type,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in filters
            )
        )

        async def once() -> list[Acl]:
            response = await self._call_controller(request, DeleteAclsResponse, deadline)
            deleted = []
            for result in response.filter_results:
                check(result.error_code, result.error_message, "ACLs")
                for each in result.matching_acls:
                    check(each.error_code, each.error_message, each.resource_name)
                    deleted.append(
                        Acl(
                            resource_type=each.resource_type,
                            resource_name=each.resource_name,
                            pattern_type=each.pattern_type,
                            principal=each.principal,
                            host=each.host,
                            operation=each.operation,
                            permission=each.permission_type,
                        )
                    )
            return deleted

        return await self._retry(once, deadline)

    async def describe_client_quotas(
        self, entity_types: Iterable[str] = (), *, timeout: float | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Returns the quotas by entity, of those that have all of the given types."""
        deadline = self._deadline(timeout)
        request = DescribeClientQuotasRequest(
            components=tuple(
                ComponentData(entity_type=each, match_type=2, match=None)  # 2: whatever the name
                for each in entity_types
            ),
            strict=False,
        )

        async def once() -> dict[QuotaEntity, dict[str, float]]:
            response = await self._call_any_broker(request, DescribeClientQuotasResponse, deadline)
            check(response.error_code, response.error_message, "client quotas")
            return {
                tuple((part.entity_type, part.entity_name) for part in entry.entity): {
                    each.key: each.value for each in entry.values
                }
                for entry in response.entries or ()
            }

        return await self._retry(once, deadline)

    async def alter_client_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Sets quotas by entity and name; None removes one."""
        deadline = self._deadline(timeout)
        request = AlterClientQuotasRequest(
            entries=tuple(
                EntryData(
                    entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
                    ops=tuple(
                        OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                        for key, value in quotas.items()
                    ),
                )
                for entity, quotas in changes.items()
            ),
            validate_only=validate_only,
        )

        async def once() -> None:
            response = await self._call_controller(request, AlterClientQuotasResponse, deadline)
            results: dict[QuotaEntity, bool | KafkaError] = {}
            for entry in response.entries:
                entity = tuple((part.entity_type, part.entity_name) for part in entry.entity)
                results[entity] = (
                    error_from(entry.error_code, entry.error_message, _quota_text(entity)) or True
                )
            results_or_raise(results)

        await self._retry(once, deadline)

    async def describe_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> dict[str, tuple[ScramCredential, ...]]:
        """Returns the SCRAM credentials of these users, or of all."""
        deadline = self._deadline(timeout)
        names = None if users is None else tuple(UserName(name=name) for name in users)

        async def once() -> dict[str, tuple[ScramCredential, ...]]:
            request = DescribeUserScramCredentialsRequest(users=names)
            response = await self._call_any_broker(request, DescribeUserScramCredentialsResponse, deadline)
            check(response.error_code, response.error_message, "SCRAM credentials")
            results: dict[str, tuple[ScramCredential, ...] | KafkaError] = {}
            for each in response.results:
                results[each.user] = error_from(
                    each.error_code, each.error_message, f"user {each.user}"
                ) or tuple(ScramCredential(info.mechanism, info.iterations) for info in each.credential_infos)
            return results_or_raise(results)

        return await self._retry(once, deadline)

    async def alter_scram_credentials(
        self,
        *,
        upsertions: Iterable[ScramCredentialUpsertion] = (),
        deletions: Iterable[tuple[str, int]] = (),
        timeout: float | None = None,
    ) -> None:
        """Sets credentials (already salted and hashed) and removes others, by user and mechanism."""
        deadline = self._deadline(timeout)
        request = AlterUserScramCredentialsRequest(
            deletions=tuple(
                ScramCredentialDeletion(name=name, mechanism=number) for name, number in deletions
            ),
            upsertions=tuple(upsertions),
        )

        async def once() -> None:
            response = await self._call_controller(request, AlterUserScramCredentialsResponse, deadline)
            results_or_raise(
                {
                    each.user: error_from(each.error_code, each.error_message, f"user {each.user}") or True
                    for each in response.results
                }
            )

        await self._retry(once, deadline)


def _quota_text(entity: QuotaEntity) -> str:
    return "quotas of " + ", ".join(
        f"{kind} {name}" if name is not None else f"the default {kind}" for kind, name in entity
    )

"""Admin calls about settings of brokers, topics and groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from strandline.client.admin.calls import AdminBase, check, error_from, results_or_raise
from strandline.client.arguments import ConfigValue, config_text, listed
from strandline.client.errors import KafkaError
from strandline.wire.api.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.wire.api.k74_list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


class ResourceType(IntEnum):
    """The kinds of resources that have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """The places that a setting can come from."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigResource(NamedTuple):
    """A resource that has settings."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int | None) -> ConfigResource:
        """Returns one broker's settings, or with None the dynamic defaults of all."""
        return cls(ResourceType.BROKER, "" if node_id is None else str(node_id))

    @classmethod
    def group(cls, name: str) -> ConfigResource:
        return cls(ResourceType.GROUP, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One setting of a resource."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None
    synonyms: tuple[tuple[str, str | None, int], ...]

    @property
    def is_default(self) -> bool:
        """True if nobody set it."""
        return self.source == ConfigSource.DEFAULT


class Operation(IntEnum):
    """The change of one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A setting to change."""

    name: str
    value: ConfigValue = None
    operation: Operation = Operation.SET


# Kinds whose settings only the broker itself knows.
_PER_BROKER: Final = frozenset({ResourceType.BROKER, ResourceType.BROKER_LOGGER})


class ConfigAdmin(AdminBase):
    """The calls about settings."""

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Returns the settings by resource and name; all of them, or those with the given names."""
        deadline = self._deadline(timeout)
        keys = None if names is None else tuple(listed(names, "names"))
        requested = list(resources)

        async def once() -> dict[ConfigResource, dict[str, ConfigEntry]]:
            results: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
            for node_id, group in _by_node(requested).items():
                request = DescribeConfigsRequest(
                    resources=tuple(
                        DescribeConfigsResource(
                            resource_type=each.type, resource_name=each.name, configuration_keys=keys
                        )
                        for each in group
                    ),
                    include_synonyms=include_synonyms,
                    include_documentation=include_documentation,
                )
                if node_id is None:
                    response = await self._call_any_broker(request, DescribeConfigsResponse, deadline)
                else:
                    response = await self._call_broker(node_id, request, DescribeConfigsResponse, deadline)
                results |= _described(response)
            return results_or_raise(results)

        return await self._retry(once, deadline)

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Changes single settings and leaves the others as they are (KIP-339)."""
        deadline = self._deadline(timeout)
        requested = {resource: tuple(resource_changes) for resource, resource_changes in changes.items()}

        async def once() -> None:
            results: dict[ConfigResource, bool | KafkaError] = {}
            for node_id, group in _by_node(list(requested)).items():
                request = IncrementalAlterConfigsRequest(
                    resources=tuple(_alteration(each, requested[each]) for each in group),
                    validate_only=validate_only,
                )
                if node_id is None:
                    response = await self._call_controller(request, IncrementalAlterConfigsResponse, deadline)
                else:
                    response = await self._call_broker(
                        node_id, request, IncrementalAlterConfigsResponse, deadline
                    )
                for each in response.responses:
                    resource = ConfigResource(ResourceType(each.resource_type), each.resource_name)
                    results[resource] = error_from(each.error_code, each.error_message, resource.name) or True
            results_or_raise(results)

        await self._retry(once, deadline)

    async def list_config_resources(
        self, types: Iterable[ResourceType] = (), *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """Returns all resources that have settings of their own, of the given kinds or of all."""
        deadline = self._deadline(timeout)
        request = ListConfigResourcesRequest(resource_types=tuple(int(each) for each in types))

        async def once() -> list[ConfigResource]:
            response = await self._call_any_broker(request, ListConfigResourcesResponse, deadline)
            check(response.error_code, None, "config resources")
            return [
                ConfigResource(ResourceType(each.resource_type), each.resource_name)
                for each in response.config_resources
            ]

        return await self._retry(once, deadline)


def _source(number: int) -> ConfigSource:
    """Returns the source by its number; UNKNOWN for one of a later Kafka than this client knows."""
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN


def _by_node(resources: list[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    results: dict[int | None, list[ConfigResource]] = {}
    for each in resources:
        node_id = int(each.name) if each.type in _PER_BROKER and each.name else None
        results.setdefault(node_id, []).append(each)
    return results


def _alteration(resource: ConfigResource, changes: tuple[ConfigChange, ...]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=tuple(
            AlterableConfig(
                name=each.name, config_operation=each.operation, value=config_text(each.name, each.value)
            )
            for each in changes
        ),
    )


def _described(
    response: DescribeConfigsResponse,
) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
    results: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
    for result in response.results:
        resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
        results[resource] = error_from(result.error_code, result.error_message, resource.name) or {
            each.name: ConfigEntry(
                name=each.name,
                value=each.value,
                source=_source(each.config_source),
                is_read_only=each.read_only,
                is_sensitive=each.is_sensitive,
                documentation=each.documentation,
                synonyms=tuple((other.name, other.value, other.source) for other in each.synonyms),
            )
            for each in result.configs
        }
    return results

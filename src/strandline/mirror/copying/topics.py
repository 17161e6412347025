"""The topics of a flow: which ones the source has, their copies at the target, settings and ACLs.

A copy has as many partitions as its topic: partitions that are added at the source are added at the target. It has the
topic's own settings, except those of config.properties.exclude.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.client.admin.access import Acl, AclFilter
from strandline.client.admin.admin import Admin
from strandline.client.admin.configs import ConfigChange, ConfigResource, ConfigSource, Operation
from strandline.client.admin.topics import NewTopic
from strandline.client.errors import KafkaError
from strandline.client.net.metadata import TopicInfo
from strandline.mirror import reports
from strandline.mirror.config.settings import FlowSettings
from strandline.mirror.own_topics import create_topic, replication_factor
from strandline.mirror.reports import Reports

_TOPIC: Final = 2
_LITERAL: Final = 3
_ALL, _READ, _WRITE = 2, 3, 4
_ALLOW: Final = 3

logger = logging.getLogger("strandline.mirror")


class MirroredTopics:
    """The topics of the source that a flow copies, as of the last `refresh`."""

    def __init__(self, flow: FlowSettings, source: Admin, target: Admin, reports: Reports) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._reports = reports
        self.by_target: dict[str, TopicInfo] = {}  # topics of the source by their names at the target

    async def refresh(self) -> None:
        """Looks for topics and partitions at the source, and creates what the target does not have."""
        found = {
            self._flow.target_topic(each.name): each
            for each in await self._source.describe_all_topics()
            if not each.is_internal and self._flow.is_mirrored(each.name)
        }
        copies = {each.name: each for each in await self._target.describe_all_topics()}
        for name, topic in found.items():
            if name not in copies:
                await self._create(name, topic)
            elif len(copies[name].partitions) < len(topic.partitions):
                await self._target.create_partitions({name: len(topic.partitions)})
                logger.info("%s: %s has %d partitions now", self._flow.name, name, len(topic.partitions))
            elif len(copies[name].partitions) > len(topic.partitions):
                count = len(copies[name].partitions)
                text = f"the copy has {count} partitions and the topic {len(topic.partitions)}: keys are elsewhere"
                self._reports.add_once(reports.FEWER_PARTITIONS, name, text)
        for name in sorted(self.by_target.keys() - found.keys()):
            text = "the topic was deleted at the source; the target keeps its copy"
            self._reports.add(reports.REMOVED, self.by_target[name].name, text)
        self.by_target = found

    async def _create(self, name: str, topic: TopicInfo) -> None:
        configs = await self._own_settings([topic.name], self._source)
        await create_topic(
            self._target,
            NewTopic(
                name=name,
                partitions=len(topic.partitions),
                replication_factor=await replication_factor(self._flow, self._target, "replication.factor"),
                configs=configs[topic.name],
            ),
        )
        logger.info("%s: created %s with %d partitions", self._flow.name, name, len(topic.partitions))

    async def _own_settings(self, names: Iterable[str], admin: Admin) -> dict[str, dict[str, str | None]]:
        """Returns the settings of topics that are not the cluster's, without those that are not to be copied."""
        resources = [ConfigResource.topic(name) for name in names]
        described = await admin.describe_configs(resources) if resources else {}
        return {
            resource.name: {
                entry.name: entry.value
                for entry in entries.values()
                if entry.source == ConfigSource.TOPIC
                and not self._flow.config_properties_exclude.match(entry.name)
            }
            for resource, entries in described.items()
        }

    async def sync_configs(self) -> None:
        """Has the settings of copies follow those of their topics, and tells where they differed."""
        sources = await self._own_settings([each.name for each in self.by_target.values()], self._source)
        targets = await self._own_settings(self.by_target, self._target)
        for name, topic in self.by_target.items():
            wanted, present = sources.get(topic.name, {}), targets.get(name, {})
            changes = [
                ConfigChange(key, value) for key, value in wanted.items() if present.get(key) != value
            ] + [ConfigChange(key, None, Operation.DELETE) for key in sorted(present.keys() - wanted.keys())]
            if changes:
                await self._target.alter_configs({ConfigResource.topic(name): changes})
                names = ", ".join(sorted(each.name for each in changes))
                text = f"settings of the copy differed from {topic.name} and follow it now: {names}"
                self._reports.add(reports.DRIFT, name, text)

    async def sync_acls(self) -> None:
        """Gives readers of a topic the same rights on its copy. Nobody gets the right to write: the mirror writes."""
        try:
            acls = await self._source.describe_acls(AclFilter(resource_type=_TOPIC, pattern_type=_LITERAL))
            copies = {topic.name: name for name, topic in self.by_target.items()}
            wanted = [
                target_acl(acl, copies[acl.resource_name])
                for acl in acls
                if acl.resource_name in copies and not _allows_writing(acl)
            ]
            if wanted:
                await self._target.create_acls(wanted)
        except KafkaError as error:
            if error.code != ErrorCode.SECURITY_DISABLED:
                raise


def target_acl(acl: Acl, name: str) -> Acl:
    """Returns the rule for a copy: a right to everything becomes one to read, as MirrorMaker 2 has it."""
    is_everything = acl.operation == _ALL and acl.permission == _ALLOW
    return Acl(
        resource_type=acl.resource_type,
        resource_name=name,
        principal=acl.principal,
        operation=_READ if is_everything else acl.operation,
        permission=acl.permission,
        host=acl.host,
        pattern_type=acl.pattern_type,
    )


def _allows_writing(acl: Acl) -> bool:
    return acl.operation == _WRITE and acl.permission == _ALLOW

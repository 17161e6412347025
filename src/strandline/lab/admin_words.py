"""The words for steps of an administrator."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.admin.configs import ConfigChange, ConfigResource
from strandline.client.admin.topics import EARLIEST, NewTopic
from strandline.lab.base import TOPIC, LabBase, listed
from strandline.lab.timeline import STEP


class AdminWords(LabBase):
    async def admin(self) -> Admin:
        """Returns the admin client, which the first call starts."""
        if self._admin is None:
            settings = {"bootstrap.servers": self.stage.bootstrap}
            self._admin = Admin(settings, world=self.stage.client_world("administrator"))
            await self._admin.start()
        return self._admin

    async def create_topic(self, name: str, partitions: int, brokers: tuple[int, ...]) -> None:
        """Creates a topic all partitions of which have these replicas, the first of which leads."""
        self._say(STEP, f"topic {name} is created, with {partitions} partitions on {listed(brokers)}")
        assignment = dict.fromkeys(range(partitions), brokers)
        await (await self.admin()).create_topics([NewTopic(name=name, assignment=assignment)])

    async def set_topic(self, settings: Mapping[str, str]) -> None:
        """Changes settings of the topic."""
        given = listed(f"{key}={value}" for key, value in settings.items())
        self._say(STEP, f"the topic gets {given}")
        changes = [ConfigChange(key, value) for key, value in settings.items()]
        await (await self.admin()).alter_configs({ConfigResource.topic(TOPIC): changes})

    async def elect_preferred(self) -> None:
        """Makes the preferred replica the leader, as an administrator does."""
        self._say(STEP, "the preferred leader is elected")
        await (await self.admin()).elect_leaders([TopicPartition(TOPIC, 0)])

    async def delete_records(self, before: int) -> None:
        self._say(STEP, f"records before offset {before} are deleted")
        await (await self.admin()).delete_records({TopicPartition(TOPIC, 0): before})

    async def committed(self, group: str = "group") -> int:
        """Counts the records that the group has committed, in all partitions together."""
        offsets = await (await self.admin()).list_group_offsets(group)
        return sum(each.offset for each in offsets.values())

    async def set_feature(self, name: str, level: int) -> None:
        """Brings a feature of the cluster down to this level."""
        self._say(STEP, f"the cluster gets {name}={level}")
        await (await self.admin()).update_features({name: level}, kind="safe-downgrade")

    async def recreate_topic(self) -> None:
        """Deletes the topic with its records and creates another one of the same name."""
        self._say(STEP, "the topic is deleted and created again")
        admin = await self.admin()
        replicas = {0: tuple(range(1, self.scenario.replication_factor + 1))}
        await admin.delete_topics([TOPIC])
        await admin.create_topics([NewTopic(name=TOPIC, assignment=replicas, configs=self.scenario.topic)])

    async def reassign(self, *brokers: int) -> None:
        """Begins to move the partition to these brokers."""
        self._say(STEP, f"the partition is to move to brokers {listed(brokers)}")
        await (await self.admin()).reassign_partitions({TopicPartition(TOPIC, 0): brokers})

    async def offset_at(self, timestamp_ms: int) -> int:
        """Returns the offset of the first record of the partition at or after this time; -1 if there is none."""
        where = TopicPartition(TOPIC, 0)
        return (await (await self.admin()).list_offsets({where: timestamp_ms}))[where].offset

    async def log_start(self) -> int:
        """Returns the first offset that the partition still has."""
        return await self.offset_at(EARLIEST)

    async def first_timestamp_ms(self) -> int:
        """Returns the timestamp of the partition's first record."""
        where = TopicPartition(TOPIC, 0)
        return (await (await self.admin()).list_offsets({where: 0}))[where].timestamp_ms

    async def count_committed(self, group: str) -> int:
        """Counts the partitions of which the group has committed an offset."""
        return len(await (await self.admin()).list_group_offsets(group))

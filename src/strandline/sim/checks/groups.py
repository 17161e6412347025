"""Groups: no partition belongs to two members in one generation, nor to two at a time in a consumer group (KIP-848)."""

from __future__ import annotations

from strandline.base.ids import TopicPartition
from strandline.groups.consumer.group import ConsumerGroup
from strandline.sim.history import History, Violation
from strandline.sim.world import World


def check(history: History) -> None:
    owners: dict[tuple[str, int, TopicPartition], str] = {}
    for each in history.owners:
        for where in sorted(each.partitions):
            known = owners.setdefault((each.group, each.generation, where), each.member)
            if known != each.member:
                raise Violation(
                    "owned-twice",
                    f"{where} in generation {each.generation} of {each.group}: {known} and {each.member}",
                )


class ConsumerGroups:
    """Looks at the coordinators again and again. A member holds the partitions that it was assigned until it says that
    it has given them up."""

    def __init__(self) -> None:
        # The member that got a partition in an epoch of its group, by one coordinator. Another coordinator may have
        # gone on from an earlier state, if the decision of this one was never committed.
        self._given: dict[tuple[int, str, bytes, int, int], str] = {}

    def look(self, world: World) -> None:
        for node in world.nodes.values():
            if not node.is_running or not hasattr(node.broker, "replicas"):
                continue
            for runtime in node.broker.groups.shards():
                for group in runtime.shard.groups.values():
                    if isinstance(group, ConsumerGroup):
                        self.check_group(group, runtime.epoch)

    def check_group(self, group: ConsumerGroup, coordinator_epoch: int) -> None:
        holders: dict[tuple[bytes, int], str] = {}
        for member_id, member in group.members.items():
            for owned in (member.assigned, member.revoking):
                for topic_id, partitions in owned.items():
                    for index, epoch in partitions.items():
                        given = (coordinator_epoch, group.group_id, topic_id, index, epoch)
                        known = holders.setdefault((topic_id, index), member_id)
                        earlier = self._given.setdefault(given, member_id)
                        if {known, earlier} != {member_id}:
                            others = ", ".join(sorted({known, earlier} - {member_id}))
                            raise Violation(
                                "owned-twice",
                                f"partition {index} in epoch {epoch} of {group.group_id}: {member_id} and {others}",
                            )

"""The lab: the words in which scenarios are written. Each word acts on the stage and is an entry of the timeline.

async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(5)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
"""

from __future__ import annotations

import asyncio

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.admin.topics import NewTopic
from strandline.lab.base import TOPIC
from strandline.lab.client_words import ClientWords
from strandline.lab.clients import read_whole
from strandline.lab.cluster_words import ClusterWords
from strandline.lab.fault_words import FaultWords
from strandline.lab.outcome import Outcome, judge
from strandline.lab.raw_words import RawWords


class Lab(ClientWords, ClusterWords, FaultWords, RawWords):
    async def run(self) -> Outcome:
        """Plays the scenario from an empty cluster to its outcome."""
        scenario, stage = self.scenario, self.stage
        await stage.start()
        await self._create_topic()
        await self.until(self._is_ready, "the topic's replicas to be in sync")
        self._began_at = stage.now()
        self._last_view, self._last_fenced = self.view, stage.fenced()
        watching = asyncio.create_task(self._watch())
        try:
            await scenario.play(self)
            return await self._judge()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await self._close_clients()

    async def _create_topic(self) -> None:
        scenario = self.scenario
        factor, partitions = scenario.replication_factor, range(scenario.partitions)
        if scenario.is_placed_by_cluster:
            topic = NewTopic(
                name=TOPIC, partitions=len(partitions), replication_factor=factor, configs=scenario.topic
            )
        else:
            brokers = [*range(1, factor + 1)] * 2
            replicas = {each: tuple(brokers[each % factor :][:factor]) for each in partitions}
            topic = NewTopic(name=TOPIC, assignment=replicas, configs=scenario.topic)
        settings = {"bootstrap.servers": self.stage.bootstrap}
        async with Admin(settings, world=self.stage.client_world("admin")) as admin:
            await admin.create_topics([topic])

    def _is_ready(self) -> bool:
        return all(
            len(self.stage.view(TOPIC, each).in_sync) == self.scenario.replication_factor
            for each in range(self.scenario.partitions)
        )

    async def _judge(self) -> Outcome:
        self._look()
        view = self.view
        logs = []
        for partition in range(self.scenario.partitions):
            if self._is_led(partition):
                settings = {"bootstrap.servers": self.stage.bootstrap}
                logs.append(
                    await read_whole(
                        settings, self.stage.client_world("judge"), TopicPartition(TOPIC, partition)
                    )
                )
        return judge(
            acknowledged=[number for each in self.producers.values() for number in each.acknowledged],
            failed={
                number: error for each in self.producers.values() for number, error in each.failed.items()
            },
            untold=[number for each in self.producers.values() for number in each.untold],
            logs=logs,
            seen=[number for each in self.consumers.values() for number in each.seen]
            if self.consumers
            else None,
            rebalances=sum(max(each.rebalances - 1, 0) for each in self.consumers.values()),
            senders={number: each.name for each in self.producers.values() for number in each.sent},
            consumer_errors=[error for each in self.consumers.values() for error in each.errors],
            leader=(view.leader, view.epoch),
        )

    def _is_led(self, partition: int) -> bool:
        leader = self.stage.view(TOPIC, partition).leader
        return leader in self.stage.brokers and self.stage.is_running(leader)

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
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from strandline.base.waiting import within
from strandline.client.admin.topics import NewTopic, TopicAdmin
from strandline.lab.clients import LabConsumer, LabProducer, read_whole
from strandline.lab.outcome import Outcome, judge
from strandline.lab.scenario import LabScenario
from strandline.lab.simulated_stage import SimulatedStage
from strandline.lab.timeline import CLUSTER, CONSUMER, PRODUCER, STEP, PartitionView, Timeline

TOPIC: Final = "orders"
OFFSETS_TOPIC: Final = "__consumer_offsets"
_WATCH_SECONDS: Final = 0.01
_PATIENCE_SECONDS: Final = 300.0


class Stuck(Exception):
    """The scenario waits for something that does not happen."""


class Lab:
    def __init__(self, scenario: LabScenario, stage: SimulatedStage) -> None:
        self.scenario = scenario
        self.stage = stage
        self.timeline = Timeline()
        self.producers: dict[str, LabProducer] = {}
        self.consumers: dict[str, LabConsumer] = {}
        self._next_number = 0
        self._began_at = 0.0
        self._watching: asyncio.Task[None] | None = None
        self._last_view: PartitionView | None = None
        self._last_fenced: tuple[int, ...] = ()
        self._told: dict[str, int] = {}  # how many of a client's results are in the timeline

    # The run

    async def run(self) -> Outcome:
        """Plays the scenario from an empty cluster to its outcome."""
        scenario, stage = self.scenario, self.stage
        await stage.start()
        async with TopicAdmin(
            {"bootstrap.servers": stage.bootstrap}, world=stage.client_world("admin")
        ) as admin:
            replicas = tuple(range(1, scenario.replication_factor + 1))
            topic = (
                NewTopic(name=TOPIC, partitions=1, replication_factor=len(replicas), configs=scenario.topic)
                if scenario.is_placed_by_cluster
                else NewTopic(name=TOPIC, assignment={0: replicas}, configs=scenario.topic)
            )
            await admin.create_topics([topic])
        await self._until(self._is_ready, "the topic's replicas to be in sync")
        self._began_at = stage.now()
        self._last_view, self._last_fenced = self.view, stage.fenced()
        self._watching = asyncio.create_task(self._watch())
        try:
            await scenario.play(self)
            return await self._judge()
        finally:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            for producer in self.producers.values():
                await producer.close()
            for consumer in self.consumers.values():
                await consumer.close()

    def _is_ready(self) -> bool:
        return len(self.view.in_sync) == self.scenario.replication_factor

    async def _judge(self) -> Outcome:
        self._look()
        view = self.view
        log: list[int] = []
        if view.leader in self.stage.brokers and self.stage.brokers[view.leader].is_running:
            settings = {"bootstrap.servers": self.stage.bootstrap}
            log = await read_whole(settings, self.stage.client_world("judge"), TOPIC)
        return judge(
            acknowledged=[number for each in self.producers.values() for number in each.acknowledged],
            failed={
                number: error for each in self.producers.values() for number, error in each.failed.items()
            },
            untold=[number for each in self.producers.values() for number in each.untold],
            log=log,
            seen=[number for each in self.consumers.values() for number in each.seen]
            if self.consumers
            else None,
            rebalances=sum(max(each.rebalances - 1, 0) for each in self.consumers.values()),
            senders={number: each.name for each in self.producers.values() for number in each.sent},
            leader=(view.leader, view.epoch),
        )

    # What can be asked

    @property
    def view(self) -> PartitionView:
        return self.stage.view(TOPIC, 0)

    @property
    def leader(self) -> int:
        return self.view.leader

    @property
    def followers(self) -> list[int]:
        return [each.broker for each in self.view.replicas if each.broker != self.leader]

    @property
    def coordinator(self) -> int:
        """The broker that coordinates all groups; the scenario gives the offsets topic one partition."""
        return self.stage.view(OFFSETS_TOPIC, 0).leader

    @property
    def controller(self) -> int:
        """The controller that leads the quorum now."""
        return self.stage.active_controller()

    # Clients

    async def producer(self, name: str = "producer", **settings: str) -> LabProducer:
        """The producer of this name, which is started when it is first asked for."""
        if name not in self.producers:
            given = {"bootstrap.servers": self.stage.bootstrap, **self.scenario.producer, **settings}
            made = LabProducer(name, given, self.stage.client_world(name), TOPIC, self._look)
            self.producers[name] = made
            await made.start()
        return self.producers[name]

    async def send(self, count: int, *, name: str = "producer", waits: bool = True, size: int = 0) -> None:
        """Sends the next numbers; with `waits` it returns when the producer was told of each. With a size, the records
        are filled up to so many bytes."""
        producer = await self.producer(name)
        numbers = list(range(self._next_number, self._next_number + count))
        self._next_number += count
        acks = producer.settings.get("acks", "all")
        self._say(STEP, f"{name} sends, acks={acks}:", numbers)
        await producer.send(numbers, size)
        if waits:
            await self.until_told(name)

    async def until_told(self, name: str = "producer") -> None:
        """Returns at the moment at which the producer was told of its last record."""
        try:
            await within(_PATIENCE_SECONDS, self.producers[name].settle())
        except TimeoutError:
            raise Stuck(f"{name} is not told what became of its records") from None

    async def consume(self, name: str = "consumer", **settings: str) -> LabConsumer:
        """Starts a consumer, which reads from now on."""
        given = {
            "bootstrap.servers": self.stage.bootstrap,
            "group.id": "group",
            **self.scenario.consumer,
            **settings,
        }
        made = LabConsumer(name, given, self.stage.client_world(name), TOPIC, self._look)
        self.consumers[name] = made
        self._say(STEP, f"{name} begins to read")
        await made.start()
        return made

    async def until_seen(self, count: int, name: str = "consumer") -> None:
        await self._until(lambda: len(self.consumers[name].seen) >= count, f"{name} to read {count} records")

    async def commit(self, name: str = "consumer") -> None:
        """The consumer commits what it has read."""
        await self.consumers[name].commit()
        self._say(STEP, f"{name} commits its offsets")

    async def crash(self, name: str) -> None:
        """The client is gone without a word. What a producer has not sent yet is gone with it."""
        self._say(STEP, f"{name} crashes")
        for node in self.stage.world.nodes:
            self.stage.cut(name, node)
        if name in self.consumers:
            await self.consumers[name].crash()

    async def begin_transaction(self, name: str = "producer") -> None:
        (await self.producer(name)).begin_transaction()
        self._say(STEP, f"{name} begins a transaction")

    async def commit_transaction(self, name: str = "producer") -> None:
        await self.producers[name].commit_transaction()
        self._say(STEP, f"{name} commits its transaction")

    async def abort_transaction(self, name: str = "producer") -> None:
        await self.producers[name].abort_transaction()
        self._say(STEP, f"{name} aborts its transaction")

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Goes on with the next step while this one still waits."""
        return asyncio.create_task(work)

    # Nodes and links

    def kill(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} is killed")
        self.stage.kill(node)
        self._look()

    def cut_power(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} loses its power")
        self.stage.cut_power(node)
        self._look()

    def pause(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} stands still")
        self.stage.pause(node)

    def resume(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} goes on")
        self.stage.resume(node)

    async def start(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} is started")
        await self.stage.start_node(node)

    async def stop(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} is stopped")
        await self.stage.stop_node(node)

    def replace_disk(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} gets an empty disk")
        self.stage.replace_disk(node)

    def stop_replication(self, *followers: int) -> None:
        """Followers, all of them unless some are named, reach the leader no more."""
        chosen = list(followers) or self.followers
        self._say(STEP, f"the link between the leader {self.leader} and {_listed(chosen)} is cut")
        for each in chosen:
            self.stage.cut(self.leader, each)

    def cut(self, one: int | str, *others: int | str) -> None:
        self._say(STEP, f"the links between {one} and {_listed(others)} are cut")
        for each in others:
            self.stage.cut(one, each)

    def silence(self, node: int, client: str) -> None:
        """Responses of the node do not reach the client; its requests still arrive."""
        self._say(STEP, f"responses of {self._named(node)} do not reach the {client} any more")
        self.stage.cut_one_way(node, client)

    def isolate(self, node: int) -> None:
        """The node reaches no other node; clients still reach it."""
        self._say(STEP, f"{self._named(node)} is cut off from all other nodes")
        for other in self.stage.world.nodes:
            if other != node:
                self.stage.cut(node, other)

    def heal(self) -> None:
        self._say(STEP, "all links work again")
        self.stage.heal()

    # Waiting

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until_replicated(self) -> None:
        """Each replica has the records of the leader, and knows that all have them."""
        await self._until(self._is_replicated, "the replicas to be equal")
        self._say(STEP, "each replica has all records")

    def _is_replicated(self) -> bool:
        replicas = self.view.replicas
        ends = {each.end_offset for each in replicas}
        return len(ends) == 1 and all(each.high_watermark == each.end_offset for each in replicas)

    async def until_written(self, *brokers: int) -> None:
        """These replicas have what the leader has, whether they know that it is committed or not."""
        await self._until(lambda: self._is_written(brokers), f"the records on {list(brokers)}")
        self._say(STEP, f"broker {_listed(brokers)} has all records of the leader")

    def _is_written(self, brokers: tuple[int, ...]) -> bool:
        ends = {each.broker: each.end_offset for each in self.view.replicas}
        return ends[self.leader] == self._next_number and all(
            ends[each] == ends[self.leader] for each in brokers
        )

    async def until_leader_changes(self) -> None:
        """Another broker leads, or the same in another epoch, and knows it."""
        before = self.view.epoch
        await self._until(lambda: self.view.epoch > before and self._leader_knows(), "another leader")
        self._look()

    async def until_leader(self, broker: int) -> None:
        await self._until(
            lambda: self.view.leader == broker and self._leader_knows(), f"broker {broker} to lead"
        )
        self._look()

    def _leader_knows(self) -> bool:
        view = self.view
        return any(
            each.broker == view.leader and each.role in ("leader", "none") and each.epoch in (view.epoch, -1)
            for each in view.replicas
        )

    async def until_offline(self) -> None:
        await self._until(lambda: self.view.leader < 0, "the partition to be offline")
        self._look()

    async def until_in_sync(self, *brokers: int) -> None:
        """The in-sync replicas are these, or all."""
        wanted = brokers or tuple(each.broker for each in self.view.replicas)
        await self._until(lambda: self.view.in_sync == tuple(sorted(wanted)), f"the ISR to be {list(wanted)}")
        self._look()

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = self.stage.now() + _PATIENCE_SECONDS
        while not condition():
            if self.stage.now() > deadline:
                raise Stuck(f"after {_PATIENCE_SECONDS:.0f} s it still waits for {what}")
            await asyncio.sleep(_WATCH_SECONDS)

    # The timeline

    def note(self, text: str) -> None:
        self._say(STEP, text)

    def _named(self, node: int) -> str:
        if node not in self.stage.brokers:
            return f"controller {node}"
        return f"the leader, broker {node}," if node == self.leader else f"broker {node}"

    def _say(self, kind: str, text: str, numbers: list[int] | None = None) -> None:
        self._look()
        self._add(kind, text, numbers)

    def _add(self, kind: str, text: str, numbers: list[int] | None = None) -> None:
        self.timeline.add(self.stage.now() - self._began_at, kind, text, self.view, numbers)

    async def _watch(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(_WATCH_SECONDS)

    def _look(self) -> None:
        """Adds what has changed since the last look."""
        view, fenced = self.view, self.stage.fenced()
        last, last_fenced = self._last_view, self._last_fenced
        if last is None:
            return
        self._last_view, self._last_fenced = view, fenced
        for broker in fenced:
            if broker not in last_fenced:
                self._add(CLUSTER, f"the controller fences broker {broker}")
        for broker in last_fenced:
            if broker not in fenced:
                self._add(CLUSTER, f"the controller lets broker {broker} in again")
        if (view.leader, view.epoch) != (last.leader, last.epoch):
            who = f"broker {view.leader} leads" if view.leader >= 0 else "nobody leads"
            self._add(CLUSTER, f"{who} in epoch {view.epoch}")
        if view.in_sync != last.in_sync:
            self._add(CLUSTER, f"in-sync replicas: {list(view.in_sync)}")
        before = {each.broker: each for each in last.replicas}
        for each in view.replicas:
            old = before.get(each.broker)
            if old is not None and 0 <= each.end_offset < old.end_offset:
                self._add(
                    CLUSTER, f"broker {each.broker} cuts its log from {old.end_offset} to {each.end_offset}"
                )
        self._tell_clients()

    def _tell_clients(self) -> None:
        for name, producer in self.producers.items():
            acknowledged = producer.acknowledged[self._told.get(f"{name} a", 0) :]
            if acknowledged:
                self._told[f"{name} a"] = len(producer.acknowledged)
                told = (
                    "takes for sent" if producer.settings.get("acks") == "0" else "has the acknowledgement of"
                )
                self._add(PRODUCER, f"{name} {told}", acknowledged)
            failed = list(producer.failed)[self._told.get(f"{name} f", 0) :]
            if failed:
                self._told[f"{name} f"] = len(producer.failed)
                for error in sorted({producer.failed[each] for each in failed}):
                    numbers = [each for each in failed if producer.failed[each] == error]
                    self._add(PRODUCER, f"{name} is told {error} for", numbers)
        for name, consumer in self.consumers.items():
            seen = consumer.seen[self._told.get(f"{name} s", 0) :]
            if seen:
                self._told[f"{name} s"] = len(consumer.seen)
                self._add(CONSUMER, f"{name} reads", seen)


def _listed(names: Iterable[int | str]) -> str:
    return ", ".join(map(str, names))

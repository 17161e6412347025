"""Measures groups beside Apache Kafka's: `python -m bench.groups`, `--rounds N`, `--quick` for one round.

Both brokers have `group.initial.rebalance.delay.ms=0` and, so that consumer groups assign at once,
`group.consumer.assignment.interval.ms=0`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.group_members import ClassicMember, ConsumerMember, Repeater, frame_of
from bench.pairs import Benchmark, Scenario, main
from bench.peers import Peer
from strandline.wire.api.k08_offset_commit import OffsetCommitResponse
from strandline.wire.codec import decode
from tests.group_requests import commit
from tests.oracle.readiness import wait_until_writable

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "10",
    "group.max.size": "1000",
}
ABOUT = """Both brokers have `group.initial.rebalance.delay.ms=0`, ten partitions of `__consumer_offsets` and one
node; Kafka runs with the heap and options of its own scripts, after a warm-up, and with
`group.consumer.assignment.interval.ms=0`: its default would make consumer groups wait up to a second before they
assign, which Strandline does not do. Members are connections of one process that speak the protocol on raw sockets;
where it says so they are librdkafka's. A step of milliseconds is done five times in each round, and the middle
counts; of librdkafka's ten members the quickest of ten counts. If a member joins while another waits for the response
to its SyncGroup, that SyncGroup is refused, and librdkafka joins again only two seconds later. Whether that happens is
chance, with either broker; with the default `group.initial.rebalance.delay.ms` it does not.

A Strandline node is one thread of Python, which takes some 50 µs for a commit that comes alone to its partition of
`__consumer_offsets`, as all do that come from ten groups one at a time; the connections here commit the same partitions
each time, as consumers do (ADR 28). Kafka uses more than one core where many connections commit at once, as its CPU
seconds in groups.json show. On two shared cores both vary by half from round to round there: five runs of 2026-11-17,
of 5 to 15 rounds, gave medians from 0.95× to 1.40× for ten connections (1.06× in the middle), and three of them 0.93×,
1.00× and 1.08× for ten members. Read these two rows as level."""
TOPIC = "orders"
PARTITIONS = 200
COMMIT_S = 2.0
COMMIT_PARTITIONS = 5
_COMMIT_VERSION = 9
_CLOSE_S_MAX = 20.0


async def join_classic(peer: Peer, group: str, count: int) -> float:
    """Returns the milliseconds from the first connection until every member has read a record."""
    members = [ClassicMember(peer.bootstrap, group, TOPIC, PARTITIONS) for _ in range(count)]
    begun_s = time.perf_counter()
    tasks = [asyncio.create_task(member.run()) for member in members]
    while any(member.first_record_s is None for member in members):
        for task in tasks:
            if task.done():
                task.result()
        await asyncio.sleep(0.001)
    took_s = max(member.first_record_s or 0.0 for member in members) - begun_s
    await _end(tasks, members)
    return took_s * 1000


async def _end(tasks: list[asyncio.Task[None]], members: list[ClassicMember]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for member in members:
        member.connection.close()


async def rebalance_classic(peer: Peer, group: str) -> float:
    """Returns the milliseconds in which 100 members, all asked at once, get the next generation; the median of five."""
    members = [ClassicMember(peer.bootstrap, group, TOPIC, PARTITIONS) for _ in range(100)]
    await asyncio.gather(*(member.connect() for member in members))
    await members[0].join()
    for number in range(1, len(members), 33):  # in three steps: each is a rebalance of all that are there
        newcomers = members[number : number + 33]
        await asyncio.gather(
            *(member.follow() for member in members[:number]), *(member.join() for member in newcomers)
        )
        await _until_settled(members[: number + 33])
    took = []
    for _ in range(5):
        leader = next(member for member in members if member.leads)
        begun_s = time.perf_counter()
        # A leader that joins again asks for a rebalance; the others hear of it with their heartbeats.
        await asyncio.gather(leader.join(), *(member.follow() for member in members if member is not leader))
        took.append(time.perf_counter() - begun_s)
        await _until_settled(members)
    await asyncio.gather(*(member.leave() for member in members))
    return sorted(took)[2] * 1000


async def _until_settled(members: list[ClassicMember]) -> None:
    """Waits until no rebalance runs: one may have begun while the one before it ended."""
    while True:
        told = await asyncio.gather(*(member.is_settled() for member in members))
        if all(told):
            return
        await asyncio.gather(
            *(m.join() for m, is_settled in zip(members, told, strict=True) if not is_settled)
        )


async def settle_consumers(peer: Peer, group: str, count: int = 100) -> float:
    """Returns the milliseconds until 100 members of the consumer protocol, which join at once, have their
    assignments."""
    members = [ConsumerMember(peer.bootstrap, group, f"{group}-{n}", TOPIC) for n in range(count)]
    await asyncio.gather(*(member.connect() for member in members))
    begun_s = time.perf_counter()
    await asyncio.gather(*(member.join() for member in members))
    share = PARTITIONS // count
    while any(member.held != share for member in members):
        await asyncio.gather(*(member.beat() for member in members))
        assert time.perf_counter() - begun_s < 60
    took_s = time.perf_counter() - begun_s
    await asyncio.gather(*(member.leave() for member in members))
    return took_s * 1000


async def commits(
    peer: Peer, group: str, connections: int, depth: int, *, are_members: bool = False
) -> float:
    """Returns the commits per second, each of five partitions. Every connection commits for its own group: as a member,
    or for one without members, as a consumer does that assigns its partitions itself."""
    host, _, port = peer.bootstrap.rpartition(":")
    loop = asyncio.get_running_loop()
    repeaters = []
    members = []
    for number in range(connections):
        who: dict[str, Any] = {}
        if are_members:
            member = ClassicMember(peer.bootstrap, f"{group}-{number}", TOPIC, PARTITIONS)
            members.append(member)
            await member.connect()
            await member.join()
            who = {"member": member.member_id, "generation": member.generation}
        request = commit(f"{group}-{number}", dict.fromkeys(range(COMMIT_PARTITIONS), 7), topic=TOPIC, **who)
        frame = frame_of(request, _COMMIT_VERSION)
        _, repeater = await loop.create_connection(lambda f=frame: Repeater(f, depth), host, int(port))  # type: ignore[misc]
        repeaters.append(repeater)
    await asyncio.sleep(0.3)
    begun_s, before = time.perf_counter(), sum(repeater.answers for repeater in repeaters)
    await asyncio.sleep(COMMIT_S)
    rate = (sum(repeater.answers for repeater in repeaters) - before) / (time.perf_counter() - begun_s)
    for repeater in repeaters:
        repeater.is_going_on = False
    await asyncio.sleep(0.1)
    for repeater in repeaters:
        answer = decode(OffsetCommitResponse, _COMMIT_VERSION, repeater.last, 5)
        assert [p.error_code for t in answer.topics for p in t.partitions] == [0] * COMMIT_PARTITIONS
        repeater.close()
    for member in members:
        await member.leave()
    return rate


async def join_librdkafka(peer: Peer, group: str, count: int) -> float:
    """Measures the same as `join_classic` with a real client."""

    def run() -> float:
        settings = {
            "bootstrap.servers": peer.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 50,
            "session.timeout.ms": 30_000,
            "enable.auto.commit": False,
            "log_level": 0,
        }
        begun_s = time.perf_counter()
        consumers = [Consumer(settings) for _ in range(count)]
        for consumer in consumers:
            consumer.subscribe([TOPIC])
        waiting = dict(enumerate(consumers))
        while waiting:
            for number, consumer in list(waiting.items()):
                message = consumer.poll(0.001)
                if message is not None and message.error() is None:
                    del waiting[number]
            for consumer in consumers:
                if consumer not in waiting.values():
                    consumer.poll(0)
        took_s = time.perf_counter() - begun_s
        _close(consumers)
        return took_s

    return await asyncio.to_thread(run) * 1000


def _close(consumers: list[Consumer]) -> None:
    """Closes all members at once. A close of librdkafka that does not end, as seen with Apache Kafka, is not awaited:
    its member ends with its session."""
    closing = [threading.Thread(target=consumer.close, daemon=True) for consumer in consumers]
    for each in closing:
        each.start()
    deadline = time.monotonic() + _CLOSE_S_MAX
    for each in closing:
        each.join(max(deadline - time.monotonic(), 0))


Measure = Callable[[Peer, str], Awaitable[float]]


def middle_of_five(measure: Measure) -> Measure:
    """Returns the median of five runs: one run of milliseconds says little about a broker that was paused until
    then."""
    return _repeated(measure, count=5, place=2)


def quickest_of_ten(measure: Measure) -> Measure:
    """Returns the least of ten runs, without the seconds for which a client waits by chance."""
    return _repeated(measure, count=10, place=0)


def _repeated(measure: Measure, *, count: int, place: int) -> Measure:
    async def repeated(peer: Peer, group: str) -> float:
        took = [await measure(peer, f"{group}-{number}") for number in range(count)]
        return sorted(took)[place]

    return repeated


SCENARIOS = (
    *(
        Scenario(
            name=f"join-{count}",
            what=f"join to first record, {count} member{'s' if count > 1 else ''} (raw sockets)",
            figure="ms",
            more_is_better=False,
            measure=middle_of_five(partial(join_classic, count=count)),
        )
        for count in (1, 10, 100)
    ),
    *(
        Scenario(
            name=f"join-librdkafka-{count}",
            what=f"join to first record, {count} member{'s' if count > 1 else ''} (librdkafka)",
            figure="ms",
            more_is_better=False,
            measure=(quickest_of_ten if count > 1 else middle_of_five)(partial(join_librdkafka, count=count)),
        )
        for count in (1, 10)
    ),
    Scenario(
        name="rebalance-100",
        what="full rebalance, 100 members, 200 partitions (classic)",
        figure="ms",
        more_is_better=False,
        measure=rebalance_classic,
    ),
    Scenario(
        name="consumers-100",
        what="100 members join and share 200 partitions (consumer protocol)",
        figure="ms",
        more_is_better=False,
        measure=middle_of_five(settle_consumers),
    ),
    Scenario(
        name="commits-1",
        what="offset commits per second, 1 connection, one at a time",
        figure="per_s",
        more_is_better=True,
        measure=lambda peer, group: commits(peer, group, 1, 1),
    ),
    Scenario(
        name="commits-10",
        what="offset commits per second, 10 connections, one at a time",
        figure="per_s",
        more_is_better=True,
        measure=lambda peer, group: commits(peer, group, 10, 1),
    ),
    Scenario(
        name="commits-10-members",
        what="offset commits per second, 10 members of as many groups, one at a time",
        figure="per_s",
        more_is_better=True,
        measure=lambda peer, group: commits(peer, group, 10, 1, are_members=True),
    ),
    Scenario(
        name="commits-10x8",
        what="offset commits per second, 10 connections, 8 under way on each",
        figure="per_s",
        more_is_better=True,
        measure=lambda peer, group: commits(peer, group, 10, 8),
    ),
)


def prepare(peer: Peer) -> None:
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(60)
    wait_until_writable(peer.bootstrap, TOPIC, partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    for partition in range(PARTITIONS):
        producer.produce(TOPIC, b"record", partition=partition)
    assert producer.flush(60) == 0
    # The first commit of all has `__consumer_offsets` created.
    consumer = Consumer({"bootstrap.servers": peer.bootstrap, "group.id": "prepare", "log_level": 0})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 0)], asynchronous=False)
    consumer.close()


BENCHMARK = Benchmark(
    name="groups",
    title="Groups beside Apache Kafka",
    about=ABOUT,
    settings=SETTINGS,
    scenarios=SCENARIOS,
    prepare=prepare,
)

if __name__ == "__main__":
    sys.exit(main(BENCHMARK))

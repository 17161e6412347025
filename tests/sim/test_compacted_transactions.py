"""A transaction coordinator reads its state back from a log that was compacted, an open transaction included."""

from __future__ import annotations

from strandline.base.ids import TopicPartition
from strandline.client.producer.producer import Producer
from strandline.sim.checks.partition import read_partition
from strandline.sim.workloads.producer import create_topic
from strandline.sim.workloads.transactions import producer
from strandline.sim.world import DATA, SimulatedNode, World
from strandline.storage import names
from strandline.transactions.transaction import COMPLETE_ABORT, COMPLETE_COMMIT, ONGOING, Transaction
from tests.sim import cluster
from tests.sim.offsets_topic import make_small_segments
from tests.sim.seeds import seeds

STATE = "__transaction_state"
SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.delete.delay.ms": "100",
}
TRANSACTIONS = 25


async def transact(mine: Producer, value: bytes, *, is_commit: bool) -> None:
    mine.begin_transaction()
    await mine.send("t", value, partition=0)
    await mine.flush()
    await (mine.commit_transaction() if is_commit else mine.abort_transaction())


def state_of(node: SimulatedNode) -> dict[str, Transaction] | None:
    """Returns the transactions as the coordinator knows them, without the state that is not written."""
    runtime = node.broker.transactions.shard_at(0)
    if runtime is None:
        return None
    known = runtime.shard.transactions
    return {
        name: Transaction(
            transactional_id=name,
            producer_id=transaction.producer_id,
            epoch=transaction.epoch,
            timeout_ms=transaction.timeout_ms,
            state=transaction.state,
            partitions=transaction.partitions,
            update_ms=transaction.update_ms,
        )
        for name, transaction in sorted(known.items())
    }


def is_compacted(node: SimulatedNode) -> bool:
    """Returns True if all segments but the active one are clean."""
    partition = TopicPartition(STATE, 0)
    replica = node.broker.replicas.get(*partition)
    cleaned = replica.directory.cleaned_offsets.get(partition, 0) if replica is not None else 0
    return replica is not None and cleaned == replica.log.active.base_offset > 0


async def scenario(world: World) -> None:
    node = world.add_node(settings=SETTINGS)
    await node.start()
    client = await world.connect(node)
    await create_topic(client, "t")
    producers = [producer(world, f"w{number}", **{"transaction.timeout.ms": 600_000}) for number in range(3)]
    for mine in producers:
        await mine.start()
        await mine.init_transactions()
    await make_small_segments(client, STATE)
    for number in range(TRANSACTIONS):
        for which, mine in enumerate(producers[:2]):
            await transact(mine, b"%d" % number, is_commit=(number + which) % 2 == 0)
    producers[2].begin_transaction()
    await producers[2].send("t", b"open", partition=0)
    await producers[2].flush()
    for mine in producers[:2]:  # so that what is open is in a closed segment
        for number in range(8):
            await transact(mine, b"more", is_commit=number % 2 == 0)
    await cluster.until(lambda: is_compacted(node))
    before = state_of(node)
    assert before is not None
    assert [t.state for t in before.values()] == [COMPLETE_ABORT, COMPLETE_ABORT, ONGOING]
    size = sum(
        node.disk.size(f"{DATA}/{STATE}-0/{name}")
        for name in node.disk.names(f"{DATA}/{STATE}-0")
        if name.endswith(names.LOG)
    )
    assert size < 3 * 2000, "most of it is compacted away"
    node.kill() if world.chance.random() < 0.5 else await node.stop()
    await node.start()
    await cluster.until(lambda: state_of(node) is not None)
    assert state_of(node) == before
    await producers[2].commit_transaction()
    await cluster.until(lambda: (state_of(node) or {})["w2"].state == COMPLETE_COMMIT)
    values = [record.value for record in (await read_partition(await world.connect(node), "t", 0)).records]
    assert b"open" in values
    for mine in producers:
        await mine.close()


@seeds(3)
def test_transactions_are_found_after_compaction_and_a_restart(seed: int) -> None:
    with World(seed) as world:
        world.run(scenario(world))

"""Producer state is a function of the log: live, replayed from any snapshot, or kept on disk, it is the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import KafkaError
from strandline.partition.producers import BATCHES_REMEMBERED, AppendedBatch, Producers
from strandline.storage.producer_state import parse_snapshot, render_snapshot
from strandline.wire.record_batch import BatchHeader
from tests.batches import batch, header

from .effort import effort

STEPS = st.lists(
    st.tuples(
        st.sampled_from((1, 2)),  # producer
        st.sampled_from(("next", "again", "older", "gap", "epoch", "stale")),
        st.integers(1, 3),  # records
    ),
    max_size=25,
)


class Sender:
    """A producer that may do everything wrong."""

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = 0
        self.sequence = 0x7FFFFFFC if producer_id == 2 else 0
        self.sent: list[BatchHeader] = []

    def make(self, what: str, count: int) -> BatchHeader | None:
        epoch, sequence = self.epoch, self.sequence
        if what in ("again", "older"):
            earlier = self.sent[-1:] if what == "again" else self.sent[:-BATCHES_REMEMBERED]
            return earlier[0] if earlier else None
        if what == "gap":
            sequence = (sequence + 2) & 0x7FFFFFFF
        elif what == "epoch":
            epoch, sequence = epoch + 1, 0
        elif what == "stale":
            epoch -= 1
        return header(batch(count, producer_id=self.producer_id, epoch=epoch, sequence=sequence))

    def stored(self, made: BatchHeader) -> None:
        if made.producer_epoch != self.epoch:
            self.sent.clear()
        self.epoch = made.producer_epoch
        self.sequence = (made.last_sequence + 1) & 0x7FFFFFFF
        self.sent.append(made)


@effort(200)
@given(STEPS, st.data())
def test_snapshot_and_tail_give_the_live_state(
    steps: list[tuple[int, str, int]], data: st.DataObject
) -> None:
    live = Producers()
    senders = {1: Sender(1), 2: Sender(2)}
    log: list[BatchHeader] = []
    snapshots = [(0, render_snapshot([]))]
    offset = 0
    for number, what, count in steps:
        made = senders[number].make(what, count)
        if made is None:
            continue
        before = live.entries()
        found = verdict(live, made)
        assert live.entries() == before, "checking changes nothing"
        if isinstance(found, AppendedBatch):
            assert (found.first_sequence, found.last_sequence) == (made.base_sequence, made.last_sequence)
            continue
        if found is not None:
            known = any(entry.producer_id == number for entry in before)
            assert known, "a producer of which nothing is known is never refused"
            assert what != "older", "a batch that was written is known"
            continue
        live.appended(made, offset)
        senders[number].stored(made)
        log.append(made._replace(base_offset=offset))
        offset += made.last_offset_delta + 1
        snapshots.append((offset, render_snapshot(live.snapshot())))
    known_to, snapshot = data.draw(st.sampled_from(snapshots))
    rebuilt = Producers()
    rebuilt.load(parse_snapshot(snapshot))
    for stored in log:
        if stored.base_offset >= known_to:
            rebuilt.replay(stored, None)
    assert sorted(rebuilt.snapshot()) == sorted(live.snapshot())
    for sender in senders.values():
        agree(live, rebuilt, sender)


def agree(live: Producers, rebuilt: Producers, sender: Sender) -> None:
    """The next batch, a gap and the repetition of each of the last five are judged alike."""
    made = [sender.make(what, 1) for what in ("next", "gap", "stale")]
    for each in (*made, *sender.sent[-BATCHES_REMEMBERED:]):
        if each is not None:
            assert verdict(live, each) == verdict(rebuilt, each)


def verdict(producers: Producers, made: BatchHeader) -> AppendedBatch | int | None:
    """Returns the batch that a batch repeats, its error code, or None if it may be appended."""
    try:
        return producers.check(made)
    except KafkaError as error:
        return error.code

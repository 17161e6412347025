"""The checker of histories: each thing that must never happen is noticed, and what is allowed is let pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.base.ids import TopicPartition
from strandline.sim.checks import groups
from strandline.sim.checks.history import check
from strandline.sim.history import (
    ABORTED,
    ACKNOWLEDGED,
    COMMITTED,
    UNKNOWN,
    History,
    Ownership,
    Send,
    TriedTransaction,
    Violation,
)

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def send(
    value: bytes, offset: int = -1, *, where: TopicPartition = A, fate: str = ACKNOWLEDGED, **more: str
) -> Send:
    return Send(process="p", where=where, value=value, fate=fate, offset=offset, **more)  # type: ignore[arg-type]


def history(*sends: Send, final: dict[TopicPartition, list[tuple[int, bytes]]]) -> History:
    made = History(sends=list(sends))
    made.final = {where: tuple(records) for where, records in final.items()}
    return made


def good() -> History:
    return history(
        send(b"a", 0),
        send(b"b", 1),
        send(b"c", fate=UNKNOWN),
        final={A: [(0, b"a"), (1, b"b")]},
    )


def lost_write() -> History:
    return history(send(b"a", 0), send(b"b", 1), final={A: [(0, b"a")]})


def lost_after_it_was_read() -> History:
    made = history(send(b"a", 0), send(b"b", fate=UNKNOWN), final={A: [(0, b"a")]})
    made.poll("r", 1.0, [(A, 1, b"b")], is_committed_only=True)
    return made


def unseen() -> History:
    made = good()
    made.poll("r", 1.0, [(A, 0, b"a")], is_committed_only=True)
    return made


def inconsistent_offsets() -> History:
    made = history(send(b"a", 0), send(b"b", fate=UNKNOWN), final={A: [(0, b"a")]})
    made.poll("r", 1.0, [(A, 0, b"b")], is_committed_only=True)
    return made


def acknowledged_elsewhere() -> History:
    return history(send(b"a", 7), send(b"b", 0), final={A: [(0, b"a"), (7, b"b")]})


def duplicate() -> History:
    return history(send(b"a"), final={A: [(0, b"a"), (1, b"a")]})


def phantom() -> History:
    return history(send(b"a", 0), final={A: [(0, b"a"), (1, b"?")]})


def nonmonotonic_send() -> History:
    return history(send(b"a"), send(b"b"), final={A: [(0, b"b"), (1, b"a")]})


def transaction(fate: str, began_at: float | None, *, there: list[TopicPartition]) -> History:
    made = history(
        send(b"x", transaction="T"),
        send(b"x", where=B, transaction="T"),
        final={A: [], B: []},
    )
    made.final.update(dict.fromkeys(there, ((0, b"x"),)))
    made.transactions["T"] = TriedTransaction(name="T", fate=fate, commit_began_at=began_at)
    return made


def aborted_read() -> History:
    return transaction(ABORTED, None, there=[A, B])


def aborted_poll() -> History:
    made = transaction(ABORTED, None, there=[])
    made.poll("r", 1.0, [(A, 0, b"x")], is_committed_only=True)
    return made


def torn() -> History:
    return transaction(UNKNOWN, 1.0, there=[A])


def committed_and_gone() -> History:
    return transaction(COMMITTED, 1.0, there=[])


def precommitted() -> History:
    made = transaction(COMMITTED, 2.0, there=[A, B])
    made.poll("r", 1.0, [(A, 0, b"x")], is_committed_only=True)
    return made


def poll_gap() -> History:
    made = history(send(b"a"), send(b"b"), send(b"c"), final={A: [(0, b"a"), (1, b"b"), (2, b"c")]})
    made.poll("r", 1.0, [(A, 0, b"a"), (A, 2, b"c")], is_committed_only=True)
    return made


def nonmonotonic_poll() -> History:
    made = good()
    made.poll("r", 1.0, [(A, 0, b"a"), (A, 1, b"b")], is_committed_only=True)
    made.poll("r", 2.0, [(A, 1, b"b")], is_committed_only=True)
    return made


def poll_skip() -> History:
    """Returns a history in which a poll skips a record; another reader got it, which does not count."""
    made = history(send(b"a"), send(b"b"), send(b"c"), final={A: [(0, b"a"), (1, b"b"), (2, b"c")]})
    made.assigned = {"r": (A,), "s": (A,)}
    made.poll("s", 1.0, [(A, 0, b"a"), (A, 1, b"b"), (A, 2, b"c")], is_committed_only=False)
    made.poll("r", 1.0, [(A, 0, b"a")], is_committed_only=True)
    made.poll("r", 2.0, [(A, 2, b"c")], is_committed_only=True)
    return made


def skip_of_the_beginning() -> History:
    made = good()
    made.assigned = {"r": (A,)}
    made.poll("r", 1.0, [(A, 1, b"b")], is_committed_only=False)
    return made


def unseen_by_one_of_two() -> History:
    made = good()
    made.assigned = {"r": (A,), "s": (A,)}
    made.poll("s", 1.0, [(A, 0, b"a"), (A, 1, b"b")], is_committed_only=True)
    return made


def disorder_in_a_poll() -> History:
    made = good()
    made.poll("r", 1.0, [(A, 1, b"b"), (A, 0, b"a")], is_committed_only=False)
    return made


@pytest.mark.parametrize(
    ("make", "verdict"),
    [
        (lost_write, "lost-write"),
        (lost_after_it_was_read, "lost-write"),
        (unseen, "unseen"),
        (inconsistent_offsets, "inconsistent-offsets"),
        (acknowledged_elsewhere, "inconsistent-offsets"),
        (duplicate, "duplicate"),
        (phantom, "phantom"),
        (nonmonotonic_send, "nonmonotonic-send"),
        (aborted_read, "aborted-read"),
        (aborted_poll, "aborted-read"),
        (torn, "torn-transaction"),
        (committed_and_gone, "lost-write"),
        (precommitted, "precommitted-read"),
        (poll_gap, "poll-gap"),
        (poll_skip, "poll-skip"),
        (skip_of_the_beginning, "poll-skip"),
        (unseen_by_one_of_two, "unseen"),
        (nonmonotonic_poll, "nonmonotonic-poll"),
        (disorder_in_a_poll, "nonmonotonic-poll"),
    ],
)
def test_each_violation_is_noticed(make: Callable[[], History], verdict: str) -> None:
    with pytest.raises(Violation) as found:
        check(make())
    assert found.value.verdict == verdict


def test_allowed_histories_pass() -> None:
    check(good())
    check(transaction(UNKNOWN, 1.0, there=[]))
    check(transaction(UNKNOWN, 1.0, there=[A, B]))
    interleaved = good()  # a reader that is given the partition again may read again, and another may skip
    interleaved.poll("r", 1.0, [(A, 0, b"a"), (A, 1, b"b")], is_committed_only=True, stint=1)
    interleaved.poll("r", 2.0, [(A, 0, b"a")], is_committed_only=True, stint=2)
    interleaved.poll("s", 2.0, [(A, 1, b"b")], is_committed_only=True)
    check(interleaved)


def test_a_partition_with_two_owners_in_a_generation_is_noticed() -> None:
    def owner(member: str, generation: int) -> Ownership:
        return Ownership(group="g", generation=generation, member=member, partitions=frozenset({A}))

    groups.check(History(owners=[owner("m1", 1), owner("m2", 2), owner("m1", 1)]))
    with pytest.raises(Violation, match="owned-twice"):
        groups.check(History(owners=[owner("m1", 1), owner("m2", 1)]))

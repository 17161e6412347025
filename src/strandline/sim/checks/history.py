"""The history of a Kafka: what producers were told and consumers saw, against what is there in the end.

Never: lost-write, unseen, inconsistent-offsets, duplicate, aborted-read (G1a), precommitted-read, torn-transaction,
nonmonotonic-send, nonmonotonic-poll, poll-gap (within one poll), poll-skip (between polls of a reader that was assigned
its partitions), phantom (a value that nobody sent). G1c has no verdict of its own: a cycle of reads between
transactions needs a read of what is not committed.
Allowed: transactions of several producers that interleave (G0), and skips between polls across a rebalance.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from strandline.base.ids import TopicPartition
from strandline.sim.history import ABORTED, ACKNOWLEDGED, COMMITTED, History, Send, Violation


def check(history: History) -> None:
    by_value = {(send.where, send.value): send for send in history.sends}
    offsets = _observed_offsets(history)
    _check_final(history, by_value)
    _check_sends(history, offsets)
    _check_transactions(history)
    _check_polls(history, by_value)
    _check_seen(history)


def _observed_offsets(history: History) -> dict[TopicPartition, dict[int, bytes]]:
    """Returns every (offset, value) that any client was shown or told; two values at one offset are a contradiction."""
    found: dict[TopicPartition, dict[int, bytes]] = {}

    def note(where: TopicPartition, offset: int, value: bytes, who: str) -> None:
        known = found.setdefault(where, {}).setdefault(offset, value)
        if known != value:
            raise Violation("inconsistent-offsets", f"{where}@{offset} is {known!r} and, to {who}, {value!r}")

    for where, records in history.final.items():
        for offset, value in records:
            note(where, offset, value, "the last reader")
    for poll in history.polls:
        for offset, value in poll.records:
            note(poll.where, offset, value, poll.process)
    for send in history.sends:
        if send.offset >= 0 and history.is_visible(send):
            note(send.where, send.offset, send.value, send.process)
    return found


def _check_final(history: History, by_value: dict[tuple[TopicPartition, bytes], Send]) -> None:
    for where, records in history.final.items():
        place: dict[bytes, int] = {}
        for offset, value in records:
            send = by_value.get((where, value))
            if send is None:
                raise Violation("phantom", f"{where}@{offset}: nobody sent {value!r}")
            if value in place and send.is_idempotent:
                raise Violation("duplicate", f"{value!r} is at {place[value]} and at {offset} of {where}")
            place[value] = offset
        for send in history.sends:
            if send.where == where and history.is_visible(send) and send.value not in place:
                raise Violation("lost-write", f"{send.value!r} of {send.process} is not in {where}")


def _check_sends(history: History, offsets: dict[TopicPartition, dict[int, bytes]]) -> None:
    """Checks that values of one process in one partition are there in the order in which they were sent."""
    place = {where: {value: offset for offset, value in found.items()} for where, found in offsets.items()}
    last: dict[tuple[str, TopicPartition], tuple[int, bytes]] = {}
    for send in history.sends:
        offset = place.get(send.where, {}).get(send.value)
        if offset is None or not send.is_idempotent:
            continue
        before = last.get((send.process, send.where))
        if before is not None and offset <= before[0]:
            raise Violation(
                "nonmonotonic-send",
                f"{send.value!r}@{offset} was sent after {before[1]!r}@{before[0]} of {send.where}",
            )
        last[send.process, send.where] = (offset, send.value)


def _check_transactions(history: History) -> None:
    present = {(where, value) for where, records in history.final.items() for _, value in records}
    parts: dict[str, list[Send]] = {}
    for send in history.sends:
        if send.transaction is not None and send.where in history.final:
            parts.setdefault(send.transaction, []).append(send)
    for name, sends in parts.items():
        there = [(send.where, send.value) in present for send in sends]
        fate = history.transactions[name].fate
        if fate == ABORTED and any(there):
            raise Violation("aborted-read", f"transaction {name} was aborted, and its values are read")
        if any(there) and not all(there):
            raise Violation(
                "torn-transaction", f"{sum(there)} of {len(there)} values of {name} ({fate}) are there"
            )
        if fate == COMMITTED and not all(there):
            raise Violation("lost-write", f"transaction {name} was committed, and is not there")


def _check_polls(history: History, by_value: dict[tuple[TopicPartition, bytes], Send]) -> None:
    visible = {where: [offset for offset, _ in records] for where, records in history.final.items()}
    present = {where: frozenset(found) for where, found in visible.items()}
    for poll in history.polls:
        for offset, value in poll.records:
            send = by_value.get((poll.where, value))
            if send is None:
                raise Violation("phantom", f"{poll.process} read {value!r}, which nobody sent")
            _check_read_in_time(history, poll.at, poll.is_committed_only, send)
            # Before the end, a reader may only be shown what stays.
            stays = poll.is_committed_only or send.transaction is None
            if stays and offset not in present.get(poll.where, (offset,)):
                raise Violation(
                    "lost-write", f"{poll.process} read {value!r}@{offset} of {poll.where}, which is gone"
                )
    _check_order(history, visible)


def _check_order(history: History, visible: dict[TopicPartition, list[int]]) -> None:
    """Checks that offsets rise within a stint, and that no record that stays is left out of a poll, nor of all polls of
    an assigned reader."""
    last: dict[tuple[str, TopicPartition, int], int] = {}
    for poll in history.polls:
        key = (poll.process, poll.where, poll.stint)
        there = visible.get(poll.where, [])
        before = last.get(key, -1)
        for number, (offset, _) in enumerate(poll.records):
            told = f"{poll.process} was given {poll.where}@{offset} after {before}"
            if offset <= before:
                raise Violation("nonmonotonic-poll", told)
            is_left_out = bisect_right(there, before) < bisect_left(there, offset)
            if is_left_out and (number or poll.process in history.assigned):
                raise Violation("poll-gap" if number else "poll-skip", told)
            before = offset
        last[key] = before
    for process, partitions in history.assigned.items():
        for where in partitions:
            end = last.get((process, where, 0), -1)
            if visible.get(where, [-1])[-1:] > [end]:
                raise Violation("unseen", f"{process} saw {where} up to {end} only")


def _check_read_in_time(history: History, at: float, is_committed_only: bool, send: Send) -> None:
    if send.transaction is None or not is_committed_only:
        return
    transaction = history.transactions[send.transaction]
    if transaction.fate == ABORTED:
        raise Violation("aborted-read", f"{send.value!r} of {send.transaction} was read and is aborted")
    if transaction.commit_began_at is None or at < transaction.commit_began_at:
        raise Violation(
            "precommitted-read", f"{send.value!r} was read before the commit of {send.transaction}"
        )


def _check_seen(history: History) -> None:
    """Checks that a reader of a whole partition has seen all that was acknowledged, once all faults are healed."""
    seen: dict[TopicPartition, set[bytes]] = {}
    for poll in history.polls:
        seen.setdefault(poll.where, set()).update(value for _, value in poll.records)
    for send in history.sends:
        if send.where in seen and history.is_visible(send) and send.value not in seen[send.where]:
            raise Violation("unseen", f"{send.value!r} was {ACKNOWLEDGED} and no reader ever saw it")

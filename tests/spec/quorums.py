"""A quorum of pure cores, without a shell: messages wait in a list, writes are on the device when the test says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from strandline.quorum import messages as m
from strandline.quorum.core import Quorum
from strandline.quorum.messages import Effect, Election, Event, OffsetAndEpoch, ReplicaKey
from strandline.quorum.settings import QuorumSettings

SETTINGS = QuorumSettings()
NO_ELECTION = Election(0)
EMPTY_LOG = OffsetAndEpoch(0, 0)


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes([node_id]) * 16)


def voters(count: int = 3) -> list[ReplicaKey]:
    return [key(number) for number in range(1, count + 1)]


class Voter:
    """One core, with every effect that it asked for."""

    def __init__(
        self,
        node_id: int = 1,
        *,
        count: int = 3,
        epochs: Sequence[tuple[int, int]] = (),
        end: int = 0,
        election: Election = NO_ELECTION,
    ) -> None:
        self.now = 0.0
        self.core = Quorum(
            own=key(node_id),
            voters=voters(count),
            settings=SETTINGS,
            election=election,
            log=m.LogSynced(end_offset=end, epochs=tuple(epochs)),
            log_start=0,
            jitter=lambda: 0.5,
            now=0.0,
        )
        self.effects: list[Effect] = []

    def step(self, event: Event, *, after_s: float = 0.0) -> list[Effect]:
        self.now += after_s
        effects = self.core.step(event, self.now)
        self.core.check_invariants()
        self.effects += effects
        return effects

    def sync(self) -> list[Effect]:
        """Every election that was asked to be written is on the device now."""
        told: list[Effect] = []
        while asked := [e for e in self.effects if isinstance(e, m.PersistElection)]:
            self.effects = [e for e in self.effects if not isinstance(e, m.PersistElection)]
            for effect in asked:
                told += self.step(m.ElectionPersisted(election=effect.election))
        return told

    def vote(
        self, candidate: int, epoch: int, last: OffsetAndEpoch = EMPTY_LOG, *, pre: bool = False
    ) -> list[Effect]:
        return self.step(
            m.VoteRequested(candidate=key(candidate), epoch=epoch, last=last, is_pre_vote=pre, token=object())
        )

    def answered(
        self, voter: int, *, granted: bool, pre: bool, epoch: int | None = None, leader: int = -1
    ) -> list[Effect]:
        known = self.core.epoch
        return self.step(
            m.VoteAnswered(
                voter_id=voter,
                asked_epoch=known,
                is_pre_vote=pre,
                granted=granted,
                epoch=known if epoch is None else epoch,
                leader_id=leader,
            )
        )

    def follow(self, leader: int, epoch: int, *, fetched: bool = True) -> None:
        self.step(m.BeginEpochRequested(leader_id=leader, epoch=epoch, token=object()))
        self.sync()
        if fetched:
            self.step(m.FetchAnswered(leader_id=leader, epoch=epoch, high_watermark=0))

    def lead(self) -> None:
        """Wins the next epoch with as few votes as it takes; its first record is at the end of its log."""
        helpers = range(2, len(self.core.voters) // 2 + 2)
        self.step(m.TimePassed(), after_s=10.0)
        for other in helpers:
            self.answered(other, granted=True, pre=True)
        self.sync()
        for other in helpers:
            self.answered(other, granted=True, pre=False)
        self.sync()
        self.append(1)

    def append(self, count: int) -> list[Effect]:
        """Records that are on this node's device."""
        end, epoch = self.core.log_end, self.core.epoch
        epochs = (
            self.core.epochs
            if self.core.epochs and self.core.epochs[-1][0] == epoch
            else (*self.core.epochs, (epoch, end))
        )
        return self.step(m.LogSynced(end_offset=end + count, epochs=epochs))

    def fetched(
        self, by: int, offset: int, *, last_epoch: int | None = None, epoch: int | None = None
    ) -> list[Effect]:
        return self.step(
            m.FetchRequested(
                replica=key(by),
                epoch=self.core.epoch if epoch is None else epoch,
                offset=offset,
                last_fetched_epoch=self.core.epoch if last_epoch is None else last_epoch,
                token=object(),
            )
        )


def of(effects: Sequence[Effect], kind: type[Any]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def is_granted(effects: Sequence[Effect]) -> bool:
    return any(answer.granted for answer in of(effects, m.AnswerVote))

"""A quorum of pure cores, without a shell: messages wait in a list, writes are on the device when the test says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from strandline.quorum import messages as m
from strandline.quorum.core import Quorum
from strandline.quorum.messages import Effect, Election, Event, OffsetAndEpoch, ReplicaKey
from strandline.quorum.settings import QuorumSettings
from strandline.quorum.voters import (
    UNKNOWN_DIRECTORY,
    Endpoint,
    Voter,
    VoterHistory,
    VotersAt,
    VoterSet,
)

SETTINGS = QuorumSettings()
NO_ELECTION = Election(0)
EMPTY_LOG = OffsetAndEpoch(0, 0)


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes([node_id]) * 16)


def voters(count: int = 3) -> list[ReplicaKey]:
    return [key(number) for number in range(1, count + 1)]


def as_voter(node_id: int) -> Voter:
    return Voter(key=key(node_id), endpoints=(Endpoint("CONTROLLER", f"node-{node_id}", 9093),))


def voter_set(*ids: int) -> VoterSet:
    return VoterSet.of(as_voter(node_id) for node_id in ids)


class Node:
    """One core, with every effect that it asked for."""

    def __init__(
        self,
        node_id: int = 1,
        *,
        count: int = 3,
        epochs: Sequence[tuple[int, int]] = (),
        end: int = 0,
        election: Election = NO_ELECTION,
        recorded: VoterSet | None = None,
        configured_by_id: bool = False,
    ) -> None:
        """With `recorded` its voters are in its log (kraft.version 1), otherwise they are configured."""
        self.now = 0.0
        configured = voter_set(*range(1, count + 1)) if recorded is None else VoterSet()
        if configured_by_id:
            configured = VoterSet(
                tuple(
                    replace(v, key=ReplicaKey(v.key.replica_id, UNKNOWN_DIRECTORY)) for v in configured.voters
                )
            )
        recorded_at = [] if recorded is None else [VotersAt(-1, recorded)]
        self.core = Quorum(
            own=as_voter(node_id),
            history=VoterHistory(configured, recorded_at, [] if recorded is None else [(-1, 1)]),
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

    def responded(
        self, voter: int, *, granted: bool, pre: bool, epoch: int | None = None, leader: int = -1
    ) -> list[Effect]:
        known = self.core.epoch
        return self.step(
            m.VoteResponseReceived(
                voter_id=voter,
                request_epoch=known,
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
            self.brought(leader, epoch)

    def brought(
        self, leader: int, epoch: int, high_watermark: int = 0, *, offset: int | None = None, **more: Any
    ) -> list[Effect]:
        """Brings a leader's response to a fetch from the end of this log, or from another offset."""
        return self.step(
            m.FetchResponseReceived(
                leader_id=leader,
                epoch=epoch,
                offset=self.core.log_end if offset is None else offset,
                high_watermark=high_watermark,
                **more,
            )
        )

    def lead(self) -> None:
        """Wins the next epoch with as few votes as it takes; its first record is at the end of its log."""
        others = [v.replica_id for v in self.core.voters if v.replica_id != self.core.own.replica_id]
        helpers = others[: len(self.core.voters) // 2 if self.core.is_voter else len(self.core.voters)]
        self.step(m.TimePassed(), after_s=10.0)
        for other in helpers:
            self.responded(other, granted=True, pre=True)
        self.sync()
        for other in helpers:
            self.responded(other, granted=True, pre=False)
        self.sync()
        change = of(self.effects, m.AppendLeaderChange)[-1]
        if change.recorded is None:
            self.append(1)
            return
        end = self.core.log_end
        self.step(m.VotersAppended(offset=end + 2, voters=change.recorded, version=change.version))
        self.append(3)

    def commit(self) -> None:
        """Every voter has fetched everything."""
        for voter in self.core.voters:
            if voter != self.core.own:
                self.fetched(voter.replica_id, self.core.log_end)

    def recorded(self, effects: Sequence[Effect]) -> VoterSet:
        """The set of voters that was asked to be appended is in this node's log, and on its device."""
        (change,) = of(effects, m.AppendVoters)
        self.step(m.VotersAppended(offset=self.core.log_end, voters=change.voters, version=change.version))
        self.append(1)
        assert isinstance(change.voters, VoterSet)
        return change.voters

    def add(self, node_id: int, *, checked: bool = True) -> list[Effect]:
        """Asks to add a voter, which responds that it knows kraft.version 1."""
        effects = self.step(m.AddVoterRequested(voter=as_voter(node_id), token=f"add {node_id}"))
        if checked and of(effects, m.CheckVoter):
            effects = self.step(m.VoterChecked(key=key(node_id), version_range=(0, 1)))
        return effects

    def remove(self, node_id: int) -> list[Effect]:
        return self.step(m.RemoveVoterRequested(key=key(node_id), token=f"remove {node_id}"))

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
    return any(response.granted for response in of(effects, m.RespondToVote))

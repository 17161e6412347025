"""Rules of the broker and the client, each of which a function switches off."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.base.ids import ProducerIdAndEpoch
from strandline.broker.metadata import controller_runtime
from strandline.broker.metadata.broker_lifecycle import BrokerLifecycle
from strandline.broker.metadata.controller_runtime import ControllerRuntime
from strandline.broker.replication import replica_fetcher
from strandline.broker.replication.replica import Replica
from strandline.client.consumer.group.classic import ClassicMembership
from strandline.client.net.cluster import ClusterClient
from strandline.controller.partitions import PREFERRED, UNCLEAN, PartitionChange
from strandline.groups.classic.protocol import ClassicGroupProtocol
from strandline.groups.offsets import GroupOffsets
from strandline.partition import leader
from strandline.partition.leader import PartitionLeader
from strandline.partition.open_transactions import OpenTransactions
from strandline.partition.producers import Producers
from strandline.quorum.elections import Elections
from strandline.quorum.messages import BeginEpochRequested, Effect
from strandline.transactions.shard import TransactionShard
from strandline.transactions.transaction import Transaction

Patch = pytest.MonkeyPatch
Rule = Callable[[Patch], None]


# Replication


def watermark_is_the_leader_s_end(patch: Patch) -> None:
    patch.setattr(leader, "high_watermark", max)


def followers_cut_nothing(patch: Patch) -> None:
    patch.setattr(replica_fetcher, "truncation_point", lambda entries, end, epoch, end_offset: end)


def nobody_lags(patch: Patch) -> None:
    patch.setattr(PartitionLeader, "lagging", lambda self, lag_max_s, now: ())


def too_few_in_sync_are_enough(patch: Patch) -> None:
    patch.setattr(PartitionLeader, "is_below_minimum", lambda self, minimum: False)


def observers_are_waited_for(patch: Patch) -> None:
    def wait_for(self: PartitionLeader, replica: int, is_alive: bool) -> None:
        if replica not in self._waited_for:
            self._waited_for += (replica,)

    patch.setattr(PartitionLeader, "wait_for", wait_for)


def leader_epochs_are_not_looked_at(patch: Patch) -> None:
    original = Replica.check_leader_epoch
    patch.setattr(Replica, "check_leader_epoch", lambda self, epoch: original(self, -1))


# Elections


def late_controllers_are_believed(patch: Patch) -> None:
    """A controller of an old epoch is told that its epoch has begun."""

    def begin(self: Elections, event: BeginEpochRequested, now: float) -> list[Effect]:
        return [self._epoch_response(event.token)]

    patch.setattr(Elections, "_begin_epoch_requested", begin)


def any_replica_may_lead(patch: Patch) -> None:
    original = PartitionChange.__init__

    def allow(self: PartitionChange, *arguments: object, **keywords: object) -> None:
        original(self, *arguments, **{**keywords, "election": UNCLEAN})  # type: ignore[arg-type]

    patch.setattr(PartitionChange, "__init__", allow)


def the_last_in_sync_leads(patch: Patch) -> None:
    original = PartitionChange._elect

    def elect(self: PartitionChange, replicas: tuple[int, ...], *more: tuple[int, ...]) -> tuple[int, bool]:
        return original(self, tuple(reversed(replicas)), *more)

    patch.setattr(PartitionChange, "_elect", elect)


def preferred_leaders_need_not_be_in_sync(patch: Patch) -> None:
    original = PartitionChange._elect

    def elect(self: PartitionChange, replicas: tuple[int, ...], *more: tuple[int, ...]) -> tuple[int, bool]:
        if self.election == PREFERRED and self.is_alive(replicas[0]):
            return replicas[0], False
        return original(self, replicas, *more)

    patch.setattr(PartitionChange, "_elect", elect)


def brokers_stop_without_a_word(patch: Patch) -> None:
    """Brokers do not hand their leadership over, and the controller hears of it by the session alone."""

    async def shut_down(self: BrokerLifecycle) -> None:
        return None

    patch.setattr(BrokerLifecycle, "shut_down", shut_down)
    refused_addresses_prove_nothing(patch)


def refused_addresses_prove_nothing(patch: Patch) -> None:
    async def is_gone(*_: object) -> bool:
        return False

    patch.setattr(controller_runtime, "is_gone", is_gone)


def silent_brokers_stay(patch: Patch) -> None:
    patch.setattr(ControllerRuntime, "_check_sessions", lambda self: None)


# Producers and transactions


def repeated_batches_are_appended(patch: Patch) -> None:
    patch.setattr(Producers, "check", lambda self, header, guard=None: None)


def fenced_producers_are_let_in(patch: Patch) -> None:
    """Neither the coordinator nor the partition looks at the epoch."""

    def known(self: TransactionShard, transactional_id: str, identity: ProducerIdAndEpoch) -> Transaction:
        return self.transactions[transactional_id]

    patch.setattr(Producers, "check_epoch", lambda self, producer_id, epoch: None)
    patch.setattr(TransactionShard, "_known", known)


def producers_are_forgotten_at_restart(patch: Patch) -> None:
    patch.setattr(Producers, "load", lambda self, entries: None)
    patch.setattr(Producers, "replay", lambda self, header, batch: None)


def open_transactions_are_shown(patch: Patch) -> None:
    patch.setattr(OpenTransactions, "last_stable_offset", lambda self, high_watermark: high_watermark)


# Groups


def commits_are_dropped(patch: Patch) -> None:
    patch.setattr(GroupOffsets, "put", lambda self, changes: None)


def static_members_are_new_members(patch: Patch) -> None:
    """A member that comes back with its instance id makes the group rebalance."""

    def replaced(self: ClassicGroupProtocol, group, request, caller, member_id, token, now, result):  # type: ignore[no-untyped-def]
        group.remove(group.static_members[request.group_instance_id])
        return self._add(group, request, caller, member_id, token, now, result)

    patch.setattr(ClassicGroupProtocol, "_replace_static", replaced)


# Clients


def clients_never_ask_again(patch: Patch) -> None:
    """Metadata is fetched once."""
    original = ClusterClient.request_update

    def request_update(self: ClusterClient) -> None:
        if not self.metadata.topics:
            original(self)

    patch.setattr(ClusterClient, "request_update", request_update)


def any_metadata_makes_members_rejoin(patch: Patch) -> None:
    patch.setattr(ClassicMembership, "metadata_changed", lambda self: self.enforce_rebalance("of the mutant"))

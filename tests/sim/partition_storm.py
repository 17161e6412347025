"""One partition of pure cores in a storm: leader, followers and the controller's rules, without a broker around them.

Three replicas, of which two must be in sync for a write. Brokers are stopped, killed, lose power, are cut off from each
other and from the controller, and come back; the controller lives. Judged at every step: what is below a high watermark
anywhere stays, and whoever leads has all of it. In the end all is healed: then all are in sync, with the same records.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from strandline.base.errors import KafkaError
from strandline.controller.image import NO_LEADER, PartitionState, _change_partition
from strandline.controller.partitions import PartitionChange
from strandline.partition import follower, leader
from strandline.quorum.epochs import end_of, last_epoch
from strandline.sim.history import Violation
from tests.sim.storm import DELAY_S, Storm

MIN_IN_SYNC = 2
CONTROLLER = 0
_SESSION_S = 3.0
_LAG_S = 1.0
_FETCH_RECORDS = 3
Entry = tuple[int, int]  # epoch and number


def epochs_of(log: list[Entry]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for offset, (epoch, _) in enumerate(log):
        if not found or found[-1][0] != epoch:
            found.append((epoch, offset))
    return tuple(found)


class Controller:
    """The rules of `controller.partitions` for one partition, and who lives as far as it knows."""

    def __init__(self, storm: PartitionStorm, replicas: tuple[int, ...]) -> None:
        self._storm = storm
        self.state = PartitionState(
            replicas=replicas, in_sync=replicas, leader=replicas[0], leader_epoch=0, partition_epoch=0
        )
        self.epochs = dict.fromkeys(replicas, 0)  # of the brokers' registrations
        self._active = dict.fromkeys(replicas, True)
        self._heard = dict.fromkeys(replicas, 0.0)

    def _change(self, *, leaving: int = -1, **what: Any) -> None:
        record = PartitionChange(
            topic_id=bytes(16),
            index=0,
            partition=self.state,
            is_alive=lambda broker: broker != leaving and self._active[broker],
            min_in_sync=MIN_IN_SYNC,
            **what,
        ).record()
        if record is not None:
            _change_partition(self.state, record)
            for broker in self._storm.brokers.values():
                self._storm.carry(CONTROLLER, broker.node_id, _told(broker, copy(self.state)))

    def _without(self, broker: int, unclean: frozenset[int] = frozenset()) -> None:
        state = self.state
        if broker in (*state.in_sync, *state.eligible_leaders, *state.last_known_leaders):
            in_sync = tuple(each for each in state.in_sync if each != broker)
            self._change(leaving=broker, in_sync=in_sync, unclean_shutdown=unclean)

    def fence(self, broker: int) -> None:
        if self._active[broker]:
            self._active[broker] = False
            self._without(broker)

    def retire(self, broker: int) -> None:
        """Before a clean end. Who is alone in sync leads to the last."""
        if broker in self.state.in_sync and self.state.in_sync != (broker,):
            self._without(broker)

    def register(self, broker: Broker) -> None:
        """A new life. It may lead again, but is in sync only if it ended cleanly or has caught up."""
        node = broker.node_id
        self._active[node] = False
        self.epochs[node] += 1
        self._without(node, frozenset() if broker.was_clean else frozenset({node}))
        self._active[node] = True
        self._heard[node] = self._storm.now
        if self.state.leader == NO_LEADER:
            self._change()
        broker.epoch = self.epochs[node]
        self._storm.carry(CONTROLLER, node, _told(broker, copy(self.state)))

    def heartbeat(self, broker: Broker) -> None:
        node = broker.node_id
        if broker.epoch != self.epochs[node]:
            return
        self._heard[node] = self._storm.now
        if not self._active[node]:
            self._active[node] = True
            if self.state.leader == NO_LEADER:
                self._change()
        self._storm.carry(CONTROLLER, node, _told(broker, copy(self.state)))

    def look(self) -> None:
        for node, at in self._heard.items():
            if self._storm.now - at > _SESSION_S:
                self.fence(node)
        self._storm.at(0.2, self.look)

    def alter(self, asker: Broker, asked: tuple[int, int], in_sync: dict[int, int]) -> bool | None:
        """Whether the set is taken; None where the asker knows less than this. `in_sync` is by broker epoch."""
        state = self.state
        if asked != (state.leader_epoch, state.partition_epoch) or asker.epoch != self.epochs[asker.node_id]:
            return None
        if state.leader != asker.node_id or asker.node_id not in in_sync:
            return None
        for node, epoch in in_sync.items():
            is_stale = epoch not in (-1, self.epochs[node])
            if (is_stale or not self._active[node]) and (node not in state.in_sync or is_stale):
                return False
        self._change(in_sync=tuple(in_sync))
        return True


def _told(broker: Broker, state: PartitionState) -> Callable[[], None]:
    return lambda: broker.told(state)


class Broker:
    def __init__(self, storm: PartitionStorm, node_id: int) -> None:
        self._storm = storm
        self.node_id = node_id
        self.log: list[Entry] = []
        self.synced = 0
        self.high_watermark = 0  # as its checkpoint has it
        self.was_clean = True
        self.epoch = 0
        self.life = 0
        self.is_running = False
        self.role: leader.Leader | follower.Follower | None = None
        self._known = -1

    def start(self) -> None:
        if self.is_running:
            return
        self.is_running, self.life, self.epoch = True, self.life + 1, -1
        self.role, self._known = None, -1
        self._join()
        self._later(DELAY_S, self._beat)
        self._later(DELAY_S, self._fetch)
        self._later(0.2, self._care)
        self._later(0.05, self._produce)

    def _join(self) -> None:
        """Until the controller has heard of this life."""
        if self.epoch < 0:
            self._storm.carry(self.node_id, CONTROLLER, self._alive(self._register))
            self._later(0.5, self._join)

    def _register(self) -> None:
        if self.epoch < 0:
            self._storm.controller.register(self)
            self.was_clean = False

    def stop(self) -> None:
        """A clean shutdown: others lead first, and everything is on the device."""
        if not self.is_running or self.epoch < 0 or self._storm.is_cut(self.node_id, CONTROLLER):
            return
        self._storm.controller.retire(self.node_id)
        self.synced = len(self.log)
        if self.role is not None:
            self.high_watermark = self.role.high_watermark
        self.is_running, self.was_clean = False, True
        self._storm.controller.fence(self.node_id)

    def kill(self, *, power_cut: bool = False) -> None:
        if not self.is_running:
            return
        self.is_running = False
        if isinstance(self.role, leader.Leader | follower.Follower):
            self.high_watermark = self._storm.chance.randint(self.high_watermark, self.role.high_watermark)
        if power_cut:
            del self.log[self._storm.chance.randint(self.synced, len(self.log)) :]
            self.high_watermark = min(self.high_watermark, len(self.log))
        elif not self._storm.is_cut(self.node_id, CONTROLLER):
            # The connection breaks, and the controller looks whether anybody is there.
            epoch = self.epoch
            self._storm.at(DELAY_S, lambda: self._storm.noticed_death(self, epoch))

    def _alive(self, act: Callable[..., object], *what: Any) -> Callable[[], None]:
        life = self.life

        def due() -> None:
            if self.is_running and self.life == life:
                act(*what)

        return due

    def _later(self, seconds: float, act: Callable[..., object], *what: Any) -> None:
        self._storm.at(seconds * (0.5 + self._storm.chance.random()), self._alive(act, *what))

    def _beat(self) -> None:
        self._storm.carry(self.node_id, CONTROLLER, self._alive(self._storm.controller.heartbeat, self))
        self._later(0.3, self._beat)

    # Roles

    def told(self, state: PartitionState) -> None:
        if not self.is_running or self.epoch < 0 or state.leader_epoch < self._known:
            return
        if state.leader_epoch == self._known:
            role = self.role
            if isinstance(role, leader.Leader) and role.decided(
                state.in_sync, state.partition_epoch, MIN_IN_SYNC
            ):
                self._storm.visible(self, role.high_watermark)
            return
        self._known = state.leader_epoch
        marked = self.high_watermark if self.role is None else self.role.high_watermark
        marked = min(marked, len(self.log))
        if state.leader == self.node_id:
            self._storm.became_leader(self)
            self.role = leader.Leader(
                node_id=self.node_id,
                epoch=state.leader_epoch,
                replicas=state.replicas,
                in_sync=state.in_sync,
                end_offset=len(self.log),
                high_watermark=marked,
                partition_epoch=state.partition_epoch,
                now=self._storm.now,
            )
        elif state.leader != NO_LEADER:
            self.role = follower.Follower(
                node_id=self.node_id, leader_id=state.leader, epoch=state.leader_epoch, high_watermark=marked
            )

    def _produce(self) -> None:
        """Whoever believes to lead takes what it is given, some of it with acks=1."""
        for _ in range(self._storm.chance.randint(0, 2)):
            self._write()
        self._later(self._storm.chance.choice((0.02, 0.2)), self._produce)

    def _write(self) -> None:
        role = self.role
        if not isinstance(role, leader.Leader) or self._storm.is_quiet:
            return
        if self._storm.chance.random() < 0.8:
            try:
                role.check_acks_all(MIN_IN_SYNC)
            except KafkaError:
                return
        self.log.append((role.epoch, self._storm.number()))
        if role.appended(len(self.log), MIN_IN_SYNC):
            self._storm.visible(self, role.high_watermark)

    def _care(self) -> None:
        """What goes on in the background: pages get to the device, laggards are taken out."""
        if self._storm.chance.random() < 0.2:
            self.synced = len(self.log)
        role = self.role
        if isinstance(role, leader.Leader) and not role.is_proposing:
            late = role.lagging(_LAG_S, self._storm.now)
            if late:
                self._propose(role, tuple(each for each in role.in_sync if each not in late))
        self._later(0.2, self._care)

    def _propose(self, role: leader.Leader, in_sync: tuple[int, ...]) -> None:
        role.propose(in_sync)
        self._ask(role, in_sync)

    def _ask(self, role: leader.Leader, in_sync: tuple[int, ...]) -> None:
        """Until an answer comes: it may have been taken."""
        if self.role is not role or role.proposed != in_sync:
            return
        asked = (role.epoch, role.partition_epoch)
        epochs = {each: role.broker_epoch_of(each) for each in in_sync}
        epochs[self.node_id] = self.epoch

        def decide() -> None:
            taken = self._storm.controller.alter(self, asked, epochs)
            self._storm.carry(
                CONTROLLER, self.node_id, self._alive(self._answered, role, in_sync, taken, asked)
            )

        self._storm.carry(self.node_id, CONTROLLER, decide)
        self._later(0.5, self._ask, role, in_sync)

    def _answered(
        self, role: leader.Leader, in_sync: tuple[int, ...], taken: bool | None, asked: tuple[int, int]
    ) -> None:
        if self.role is not role or role.proposed != in_sync:
            return
        if taken is False:
            role.proposal_failed()
        elif taken and role.decided(in_sync, asked[1] + 1, MIN_IN_SYNC):
            self._storm.visible(self, role.high_watermark)

    # Replication

    def _fetch(self) -> None:
        role = self.role
        if isinstance(role, follower.Follower):
            leading = self._storm.brokers[role.leader_id]
            asked = (role.epoch, len(self.log), last_epoch(epochs_of(self.log)), self.epoch)
            self._storm.carry(self.node_id, role.leader_id, leading._alive(leading._serve, self, role, asked))
        self._later(3 * DELAY_S, self._fetch)

    def _serve(self, by: Broker, whose: follower.Follower, asked: tuple[int, int, int, int]) -> None:
        role = self.role
        epoch, offset, last, broker_epoch = asked
        if not isinstance(role, leader.Leader) or role.epoch != epoch:
            return
        point = end_of(epochs_of(self.log), len(self.log), last) if offset else None
        is_apart = offset > 0 and (point is None or point.epoch != last or point.offset < offset)
        records: list[Entry] = []
        if is_apart:
            cut: tuple[int, int] | None = (0, 0) if point is None else (point.epoch, point.offset)
        else:
            cut = None
            records = self.log[offset : offset + _FETCH_RECORDS]
            if role.fetched(by.node_id, offset, 0, broker_epoch, MIN_IN_SYNC, self._storm.now):
                self._storm.visible(self, role.high_watermark)
            if not role.is_proposing and role.may_join(by.node_id, is_alive=True):
                self._propose(role, (*role.in_sync, by.node_id))
        brought = by._alive(by._take, whose, offset, records, cut, role.high_watermark)
        self._storm.carry(self.node_id, by.node_id, brought)

    def _take(
        self,
        role: follower.Follower,
        offset: int,
        records: list[Entry],
        cut: tuple[int, int] | None,
        high_watermark: int,
    ) -> None:
        if self.role is not role or offset != len(self.log):
            return
        if cut is not None:
            target = follower.truncation_point(epochs_of(self.log), len(self.log), *cut)
            del self.log[target:]
            self.synced = min(self.synced, target)
            role.high_watermark = min(role.high_watermark, target)
            self.high_watermark = min(self.high_watermark, target)
            return
        self.log += records
        if role.told(high_watermark, len(self.log)):
            self._storm.visible(self, role.high_watermark)


class PartitionStorm(Storm):
    def __init__(self, seed: int, replicas: int = 3) -> None:
        super().__init__("partition storm", seed)
        ids = tuple(range(1, replicas + 1))
        self.is_quiet = False  # nobody writes
        self.committed: list[Entry] = []
        self.brokers = {node: Broker(self, node) for node in ids}
        self.controller = Controller(self, ids)
        self.controller.look()

    def noticed_death(self, broker: Broker, epoch: int) -> None:
        if not broker.is_running and self.controller.epochs[broker.node_id] == epoch:
            self.controller.fence(broker.node_id)

    def visible(self, broker: Broker, high_watermark: int) -> None:
        """Readers are shown everything below it."""
        shown = broker.log[:high_watermark]
        known = self.committed[:high_watermark]
        if shown[: len(known)] != known or len(shown) < high_watermark:
            raise Violation(
                "inconsistent-offsets", f"broker {broker.node_id} shows others below {high_watermark}"
            )
        self.committed += shown[len(known) :]

    def became_leader(self, broker: Broker) -> None:
        if broker.log[: len(self.committed)] != self.committed:
            raise Violation(
                "lost-write", f"broker {broker.node_id} leads without all that readers were shown"
            )

    def is_whole(self) -> bool:
        state = self.controller.state
        return set(state.in_sync) == set(state.replicas) and all(
            each.is_running and each.role is not None and each.role.epoch == state.leader_epoch
            for each in self.brokers.values()
        )

"""One partition of pure cores in a storm: leader, followers and the controller's plans, without a broker around them.

Two or three replicas, of which two must be in sync for a write, or as many as the minimum of the moment says. Brokers
are stopped, killed, lose power, are cut off from each other and from the controller, and come back; the partition moves
between them; the controller lives. Judged at every step: what is below a high watermark anywhere stays, and each
replica that leads has all of it. In the end all is healed: then all are in sync, with the same records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strandline.base.errors import ErrorCode, KafkaError
from strandline.controller.image import NO_LEADER, PartitionState
from strandline.partition import follower, leader
from strandline.quorum.epochs import end_of, last_epoch
from strandline.sim.history import Violation
from strandline.wire.api.k56_alter_partition import ResponsePartitionData
from tests.sim.partition_controller import CONTROLLER, Controller, News, is_taken_back
from tests.sim.storm import DELAY_S, Storm

_LAG_S = 1.0
_FETCH_RECORDS = 3
Entry = tuple[int, int]  # epoch and number


def epochs_of(log: list[Entry]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for offset, (epoch, _) in enumerate(log):
        if not found or found[-1][0] != epoch:
            found.append((epoch, offset))
    return tuple(found)


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
        self.role: leader.PartitionLeader | follower.PartitionFollower | None = None
        self.version = -1  # how much of the metadata it knows, which is on its device too
        self._min_in_sync = 2

    def start(self) -> None:
        if self.is_running:
            return
        self.is_running, self.life, self.epoch = True, self.life + 1, -1
        self.role = None
        self._join()
        self._later(DELAY_S, self._beat)
        self._later(DELAY_S, self._fetch)
        self._later(0.2, self._care)
        self._later(0.05, self._produce)

    def _join(self) -> None:
        """Registers this life, again and again until the controller has heard of it."""
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
        if isinstance(self.role, leader.PartitionLeader | follower.PartitionFollower):
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

    def told(self, news: News) -> None:
        """The metadata comes in order, and nothing of it counts before this life's own registration."""
        if not self.is_running or self.epoch < 0 or news.version <= max(self.version - 1, self.epoch):
            return
        self.version, self._min_in_sync, state = news.version, news.min_in_sync, news.state
        if self.node_id not in state.replicas:
            self._drop()
            return
        role = self.role
        if isinstance(role, leader.PartitionLeader) and (state.leader, state.leader_epoch) == (
            self.node_id,
            role.epoch,
        ):
            role.replicas_changed(state.replicas, self._storm.now)
            if role.decided(state.in_sync, state.partition_epoch, self._min_in_sync):
                self._storm.visible(self, role.high_watermark)
        elif role is None or role.epoch != state.leader_epoch:
            marked = self.high_watermark if role is None else role.high_watermark
            self._take_role(state, min(marked, len(self.log)))

    def _take_role(self, state: PartitionState, high_watermark: int) -> None:
        if state.leader != self.node_id:
            self.role = follower.PartitionFollower(
                node_id=self.node_id,
                leader_id=state.leader,
                epoch=state.leader_epoch,
                high_watermark=high_watermark,
            )
            return
        self._storm.became_leader(self)
        self.role = leader.PartitionLeader(
            node_id=self.node_id,
            epoch=state.leader_epoch,
            replicas=state.replicas,
            in_sync=state.in_sync,
            end_offset=len(self.log),
            high_watermark=high_watermark,
            partition_epoch=state.partition_epoch,
            now=self._storm.now,
        )
        if self.role.appended(len(self.log), self._min_in_sync):
            self._storm.visible(self, self.role.high_watermark)

    def _drop(self) -> None:
        """Drops the copy of a broker that is no replica any more."""
        self.role, self.log, self.synced, self.high_watermark = None, [], 0, 0

    def _produce(self) -> None:
        """A node that believes that it leads takes records, some of them with acks=1."""
        for _ in range(self._storm.chance.randint(0, 2)):
            self._write()
        self._later(self._storm.chance.choice((0.02, 0.2)), self._produce)

    def _write(self) -> None:
        role = self.role
        if not isinstance(role, leader.PartitionLeader) or self._storm.is_quiet:
            return
        if self._storm.chance.random() < 0.8:
            try:
                role.check_acks_all(self._min_in_sync)
            except KafkaError:
                return
        self.log.append((role.epoch, self._storm.number()))
        if role.appended(len(self.log), self._min_in_sync):
            self._storm.visible(self, role.high_watermark)

    def _care(self) -> None:
        """Does the work of the background: writes pages to the device, and removes lagging followers from the set."""
        if self._storm.chance.random() < 0.2:
            self.synced = len(self.log)
        role = self.role
        if isinstance(role, leader.PartitionLeader) and role.remove_lagging(
            lambda replica: role.is_lagging(replica, _LAG_S, self._storm.now), self._min_in_sync
        ):
            self._storm.visible(self, role.high_watermark)
        if isinstance(role, leader.PartitionLeader) and not role.is_proposing:
            late = role.lagging(_LAG_S, self._storm.now)
            if late:
                self._propose(role, tuple(each for each in role.in_sync if each not in late))
        self._later(0.2, self._care)

    def _propose(self, role: leader.PartitionLeader, in_sync: tuple[int, ...]) -> None:
        role.propose(in_sync)
        self._ask(role, in_sync)
        self._storm.proposed(self, [each for each in in_sync if each not in role.in_sync])

    def _ask(self, role: leader.PartitionLeader, in_sync: tuple[int, ...]) -> None:
        """Repeats the request until a response comes: it may have been carried out."""
        if self.role is not role or role.proposed != in_sync:
            return
        asked = (role.epoch, role.partition_epoch)
        epochs = {each: role.broker_epoch_of(each) for each in in_sync}
        epochs[self.node_id] = self.epoch

        def decide() -> None:
            response = self._storm.controller.alter(self, asked, epochs)
            self._storm.carry(CONTROLLER, self.node_id, self._alive(self._responded, role, in_sync, response))

        self._storm.carry(self.node_id, CONTROLLER, decide)
        self._later(0.5, self._ask, role, in_sync)

    def _responded(
        self, role: leader.PartitionLeader, in_sync: tuple[int, ...], response: ResponsePartitionData | None
    ) -> None:
        if self.role is not role or role.proposed != in_sync or response is None:
            return
        if is_taken_back(response.error_code):
            role.proposal_failed()
        elif (response.error_code, response.leader_epoch) == (ErrorCode.NONE, role.epoch) and role.decided(
            response.isr, response.partition_epoch, self._min_in_sync
        ):
            self._storm.visible(self, role.high_watermark)

    # Replication

    def _fetch(self) -> None:
        role = self.role
        if isinstance(role, follower.PartitionFollower) and role.leader_id != NO_LEADER:
            leading = self._storm.brokers[role.leader_id]
            asked = (role.epoch, len(self.log), last_epoch(epochs_of(self.log)), self.epoch)
            self._storm.carry(self.node_id, role.leader_id, leading._alive(leading._serve, self, role, asked))
        self._later(3 * DELAY_S, self._fetch)

    def _serve(self, by: Broker, whose: follower.PartitionFollower, asked: tuple[int, int, int, int]) -> None:
        role = self.role
        epoch, offset, last, broker_epoch = asked
        if not isinstance(role, leader.PartitionLeader) or role.epoch != epoch:
            return
        point = end_of(epochs_of(self.log), len(self.log), last) if offset else None
        is_apart = offset > 0 and (point is None or point.epoch != last or point.offset < offset)
        records: list[Entry] = []
        if is_apart:
            cut: tuple[int, int] | None = (0, 0) if point is None else (point.epoch, point.offset)
        else:
            cut = None
            records = self.log[offset : offset + _FETCH_RECORDS]
            if by.node_id not in role.replicas:
                return
            if role.fetched(by.node_id, offset, 0, broker_epoch, self._min_in_sync, self._storm.now):
                self._storm.visible(self, role.high_watermark)
            if not role.is_proposing and role.may_join(by.node_id, is_alive=True):
                self._propose(role, (*role.in_sync, by.node_id))
            elif self._storm.waits_for_joiners and by.node_id not in role.maximal_in_sync:
                role.wait_for(by.node_id, is_alive=True)
        brought = by._alive(by._take, whose, offset, records, cut, role.high_watermark)
        self._storm.carry(self.node_id, by.node_id, brought)

    def _take(
        self,
        role: follower.PartitionFollower,
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
        if role.leader_high_watermark_advanced(high_watermark, len(self.log)):
            self._storm.visible(self, role.high_watermark)


class PartitionStorm(Storm):
    def __init__(self, seed: int) -> None:
        super().__init__("partition storm", seed)
        nodes = tuple(range(1, self.chance.choice((3, 3, 4)) + 1))
        self.is_quiet = False  # nobody writes
        self.strikes_next_proposal = False
        self.waits_for_joiners = self.chance.random() < 0.5
        self.committed: list[Entry] = []
        self.brokers = {node: Broker(self, node) for node in nodes}
        self.controller = Controller(self, nodes, tuple(self.chance.sample(nodes, 3)))
        self.controller.look()

    def noticed_death(self, broker: Broker, epoch: int) -> None:
        if not broker.is_running and self.controller.epoch_of(broker.node_id) == epoch:
            self.controller.fence(broker.node_id)

    def proposed(self, broker: Broker, joiners: list[int]) -> None:
        """A follower is to be taken in, and the controller is about to hear of it. That the response does not get
        through, and the follower no longer either, is the moment at which both sets count (KIP-497)."""
        if self.strikes_next_proposal and joiners:
            self.strikes_next_proposal = False
            self.cut(CONTROLLER, broker.node_id)
            for joiner in joiners:
                self.cut(joiner, broker.node_id)

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
        if set(state.in_sync) != set(state.replicas) or state.adding or state.removing:
            return False
        roles = [self.brokers[node].role for node in state.replicas]
        return all(each.is_running for each in self.brokers.values()) and all(
            role is not None and role.epoch == state.leader_epoch for role in roles
        )

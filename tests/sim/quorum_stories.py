"""Random events of a quorum of cores: see `quorum_storm`, which judges."""

from __future__ import annotations

import itertools

from strandline.quorum import messages as m
from strandline.quorum.messages import ReplicaKey
from strandline.sim.history import Violation
from tests.sim.quorum_judge import Entry
from tests.sim.quorum_storm import Member, QuorumStorm
from tests.sim.storm import DELAY_S, LATE_S

_ACTS = 60
_LIVE_S = 120.0
_CALM_S = 12.0
_KINDS = (
    ("append",) * 6
    + ("add", "add", "add", "remove", "remove-leader", "overlap")
    + ("kill", "kill", "kill-leader", "power-cut", "power-cut", "start", "start", "start", "start")
    + ("cut", "cut-one-way", "cut-leader", "heal", "heal", "resign", "replace-disk")
    + ("split", "split", "disaster")
)


class Weather:
    """Faults and requests, drawn one after the other.

    A voter whose disk is lost is a vote that nobody has any more. There is never more than one such, and no other voter
    is removed before it is, or the majority could be gone for ever.
    """

    def __init__(self, storm: QuorumStorm) -> None:
        self._storm = storm
        self._chance = storm.chance
        self._members = list(storm.members.values())
        self._lost: ReplicaKey | None = None
        self._led_before: Member | None = None
        storm.on_leader = self._greet

    def _greet(self, leader: Member) -> None:
        """Requests changes of each new leader at once, mostly to remove the leader before it."""
        gone, self._led_before = self._led_before, leader
        if gone is None or self._storm.is_calm or self._chance.random() < 0.5:
            return
        if self._chance.random() < 0.7:
            self._storm.at(3 * DELAY_S * self._chance.random(), lambda: self._remove(gone.device.key))
        else:
            other = self._chance.choice(self._members)
            self._storm.at(3 * DELAY_S * self._chance.random(), lambda: self._add(other))

    def act(self) -> None:
        kind = self._chance.choice(_KINDS)
        member = self._chance.choice(self._members)
        leaders = [each for each in self._members if each.is_leader]
        if kind.endswith("leader"):
            if not leaders:
                return
            member = self._chance.choice(leaders)
        match kind:
            case "append":
                for leader in leaders:
                    write(self._storm, leader)
            case "add" | "overlap":
                for _ in range(1 if kind == "add" else 3):
                    self._add(self._chance.choice(self._members))
            case "remove" | "remove-leader":
                self._remove(member.device.key)
            case "kill" | "kill-leader":
                member.kill()
            case "power-cut":
                member.kill(power_cut=True)
            case "start":
                self._start_all(self._chance.randint(1, len(self._members)))
            case "cut" | "cut-leader":
                self._cut_off(member)
            case "cut-one-way":
                self._storm.cut(member.node_id, self._chance.choice(self._members).node_id)
            case "split":
                self._split()
            case "disaster":
                self._disaster()
            case "heal":
                self._storm.heal()
            case "resign":
                if member.core is not None:
                    member.step(m.ResignationRequested())
            case "replace-disk":
                self._replace_disk(member)

    def _split(self) -> None:
        """Splits the network into two halves, other ones each time, and requests changes of the leader in one."""
        for _ in range(self._chance.randint(2, 4)):
            self._storm.heal()
            half = self._chance.sample(self._members, len(self._members) // 2)
            for one in half:
                for other in self._members:
                    if other not in half:
                        self._storm.cut(one.node_id, other.node_id)
                        self._storm.cut(other.node_id, one.node_id)
            for _ in range(self._chance.randint(1, 3)):
                self._storm.run(self._chance.choice((0.05, 1.0, 3.0)) * self._chance.random())
                one = self._chance.choice(self._members)
                if self._chance.random() < 0.5:
                    self._remove(one.device.key)
                else:
                    self._add(one)

    def _disaster(self) -> None:
        """Cuts one node off, takes the disk of another and kills a third; then brings the first back."""
        self._storm.heal()
        for each in self._members:
            each.start()
        self._storm.run(self._chance.uniform(0.5, 3.0))
        away, losing, dying = self._chance.sample(self._members, 3)
        self._cut_off(away)
        for leader in self._members:
            if leader.is_leader:
                write(self._storm, leader)
        self._storm.run(self._chance.uniform(0.0, 0.5))
        self._replace_disk(losing)
        dying.kill()
        self._storm.heal()

    def _ask(self, event: m.Event) -> None:
        for leader in self._members:
            if leader.is_leader:
                leader.step(event)

    def _add(self, member: Member) -> None:
        if member.core is not None:
            self._ask(m.AddVoterRequested(voter=member.voter, token=None))

    def _remove(self, key: ReplicaKey) -> None:
        if all(each.core is not None and self._lost not in each.core.voters for each in self._members):
            self._lost = None
        self._ask(m.RemoveVoterRequested(key=self._lost or key, token=None))

    def _start_all(self, count: int) -> None:
        for member in self._chance.sample(self._members, count):
            member.start()

    def _cut_off(self, member: Member) -> None:
        for other in self._members:
            if other is not member:
                self._storm.cut(member.node_id, other.node_id)
                self._storm.cut(other.node_id, member.node_id)

    def _replace_disk(self, member: Member) -> None:
        everybody = [each.core for each in self._members]
        if self._lost is not None or any(core is None for core in everybody):
            return
        sets = {core.voters for core in everybody if core is not None}
        (known,) = sets if len(sets) == 1 else ((),)
        if len(known) < 3 or any(
            core.history.last_offset >= core.high_watermark for core in everybody if core
        ):
            return
        self._lost = member.device.key
        member.kill()
        member.replace_disk()
        self._storm.at(self._chance.uniform(0.0, 3.0), member.start)

    def heal(self) -> None:
        """Heals everything; removes voters whose disk is lost, until all nodes agree."""
        self._storm.heal()
        self._storm.is_calm = True
        self._storm.run(LATE_S)  # until nothing is under way any more
        for member in self._members:
            member.start()
        deadline = self._storm.now + _LIVE_S
        while not self._is_settled():
            if self._storm.now > deadline:
                raise Violation("not-live", "the quorum does not agree")
            if self._lost is not None:
                self._remove(self._lost)
            self._storm.run(0.5)

    def _is_settled(self) -> bool:
        cores = [each.core for each in self._members if each.core is not None]
        if len(cores) < len(self._members) or sum(each.is_leader for each in self._members) != 1:
            return False
        if self._lost is not None and any(self._lost in core.voters for core in cores):
            return False
        ends = {
            (len(each.device.log), core.log_end, core.high_watermark)
            for each, core in zip(self._members, cores, strict=True)
        }
        return len(ends) == 1 and len(set(ends.pop())) == 1 and len({core.leader_id for core in cores}) == 1

    def check_agreement(self) -> None:
        logs = [each.device.log for each in self._members]
        if any(log != logs[0] for log in logs):
            raise Violation("metadata-differs", "the logs are not the same in the end")
        sets = [entry.voters.keys for entry in logs[0] if entry.voters is not None]
        for before, after in itertools.pairwise(sets):
            if len(set(before) ^ set(after)) > 1:
                raise Violation("voters-jumped", f"{before} became {after}")
        for each in self._members:
            assert each.core is not None
            each.core.check_invariants()

    def disturb_a_follower(self) -> None:
        """Disturbs a follower that is not needed for a majority: the leader goes on, and commits."""
        (leader,) = [each for each in self._members if each.is_leader]
        assert leader.core is not None
        epoch = leader.core.epoch
        voters = leader.core.voters
        others = [each for each in self._members if each is not leader]
        if len(voters) < 3:
            others = [each for each in others if each.device.key not in voters]
        if not others:
            return
        victim = self._chance.choice(others)
        act = self._chance.choice(("kill", "power-cut", "cut"))
        if act == "cut":
            self._cut_off(victim)
        else:
            victim.kill(power_cut=act == "power-cut")
        is_writing = self._chance.random() < 0.5  # or who comes back has all there is, and might be elected
        for _ in range(3):
            if is_writing:
                write(self._storm, leader)
            self._storm.run(_CALM_S * self._chance.random() / 3)
        self._storm.heal()
        victim.start()
        self._storm.run(_CALM_S)
        if not leader.is_leader or leader.core.epoch != epoch:
            raise Violation("leader-disturbed", f"{act} of follower {victim.node_id} has ended epoch {epoch}")
        if leader.core.high_watermark != len(leader.device.log):
            raise Violation("not-live", "the leader does not commit while a minority is away")


def write(storm: QuorumStorm, leader: Member) -> None:
    assert leader.core is not None
    leader.append(Entry(leader.core.epoch, storm.number()))


def run(seed: int) -> QuorumStorm:
    """Runs one storm, from its first election to the calm after it; raises Violation, or an assertion of a core."""
    shape = QuorumStorm(seed).chance
    members = shape.choice((3, 4, 5))
    storm = QuorumStorm(seed, members=members, first_voters=shape.randint(1, members))
    weather = Weather(storm)
    for member in storm.members.values():
        member.start()
    storm.run(3.0)
    for _ in range(_ACTS):
        weather.act()
        storm.run(
            shape.choice((0.0, shape.uniform(0.0, 0.05), shape.uniform(0.0, 0.3), shape.uniform(0.0, 2.5)))
        )
    weather.heal()
    weather.check_agreement()
    weather.disturb_a_follower()
    weather.heal()
    weather.check_agreement()
    return storm

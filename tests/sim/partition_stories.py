"""Random events of a partition of cores: see `partition_storm`, which judges."""

from __future__ import annotations

from collections.abc import Callable

from strandline.sim.history import Violation
from tests.sim.partition_controller import CONTROLLER
from tests.sim.partition_storm import Broker, PartitionStorm
from tests.sim.storm import LATE_S

_ACTS = 60
_LIVE_S = 60.0
_KINDS = (
    ("kill",) * 4
    + ("kill-leader", "kill-leader", "kill-all", "power-cut", "power-cut-leader")
    + ("start",) * 7
    + ("stop", "stop", "stop-leader")
    + ("cut-off", "cut-off-leader", "cut-from-controller", "cut-one-way", "cut-one-way-leader")
    + ("heal",) * 3
)
# What administrators do, and what is worst for a follower that is being taken in. In many storms there is neither: then
# more of what brokers suffer fits in.
_AT_PROPOSALS = ("strike-next-proposal",) * 3
_CHANGES = ("reassign", "reassign", "cancel", "elect", "minimum", "minimum")


class Weather:
    """Faults, drawn one after the other.

    Who loses power does so when all are in sync, and until they are again nobody else is killed, only stopped, and the
    minimum stays: of the two that must have a record before it is committed one may end uncleanly, not both (KIP-966).
    """

    def __init__(self, storm: PartitionStorm) -> None:
        self._storm = storm
        self._brokers = list(storm.brokers.values())
        self._has_recovered = True
        kind = storm.chance.random()
        self._kinds = _KINDS + (_CHANGES if kind < 0.4 else _AT_PROPOSALS if kind < 0.6 else ())

    def _kill(self, broker: Broker) -> None:
        if self._has_recovered:
            broker.kill()

    def act(self) -> None:
        chance, storm = self._storm.chance, self._storm
        kind, broker = chance.choice(self._kinds), chance.choice(self._brokers)
        self._has_recovered = self._has_recovered or storm.is_whole()
        if kind.endswith("leader"):
            broker = storm.brokers.get(storm.controller.state.leader, broker)
        match kind:
            case "kill" | "kill-leader":
                self._kill(broker)
            case "kill-all":
                for each in self._brokers:
                    self._kill(each)
            case "stop" | "stop-leader":
                broker.stop()
            case "power-cut" | "power-cut-leader" if storm.is_whole() and storm.controller.min_in_sync > 1:
                broker.kill(power_cut=True)
                self._has_recovered = False
                storm.at(chance.uniform(0.0, 5.0), broker.start)
            case "start":
                chance.choice(self._brokers).start()
            case "cut-off" | "cut-off-leader":
                self._cut_off(broker, from_controller=chance.random() < 0.3)
            case "cut-from-controller":
                storm.cut(broker.node_id, CONTROLLER)
                storm.cut(CONTROLLER, broker.node_id)
            case "cut-one-way" | "cut-one-way-leader":
                pair = [broker.node_id, chance.choice((CONTROLLER, *storm.brokers))]
                chance.shuffle(pair)
                storm.cut(*pair)
            case "reassign":
                storm.controller.reassign(tuple(chance.sample(list(storm.brokers), chance.choice((2, 3)))))
            case "cancel":
                storm.controller.reassign(None)
            case "elect":
                storm.controller.elect_preferred()
            case "minimum" if self._has_recovered:
                storm.controller.set_minimum(chance.choice((1, 2, 3)))
            case "strike-next-proposal":
                storm.strikes_next_proposal = True
            case "heal":
                storm.heal()

    def _cut_off(self, broker: Broker, *, from_controller: bool) -> None:
        others = [each.node_id for each in self._brokers if each is not broker]
        for other in (*others, CONTROLLER) if from_controller else others:
            self._storm.cut(broker.node_id, other)
            self._storm.cut(other, broker.node_id)

    def heal(self) -> None:
        """Heals everything, and waits until all are in sync with the same records, and a write is seen."""
        self._storm.heal()
        self._storm.strikes_next_proposal = False
        self._storm.is_calm = True
        self._storm.run(LATE_S)
        for each in self._brokers:
            each.start()
        before = len(self._storm.committed)
        self._until("the replicas do not get in sync", self._storm.is_whole)
        self._until("nothing is committed", lambda: len(self._storm.committed) > before)
        self._storm.is_quiet = True
        self._until("the copies stay different", self._is_settled)

    def _until(self, otherwise: str, condition: Callable[[], bool]) -> None:
        deadline = self._storm.now + _LIVE_S
        while not condition():
            if self._storm.now > deadline:
                raise Violation("not-live", otherwise)
            self._storm.run(0.5)

    def _is_settled(self) -> bool:
        logs = [self._storm.brokers[node].log for node in self._storm.controller.state.replicas]
        return self._storm.is_whole() and all(log == self._storm.committed for log in logs)


def run(seed: int) -> PartitionStorm:
    storm = PartitionStorm(seed)
    weather = Weather(storm)
    for broker in storm.brokers.values():
        broker.start()
    storm.run(2.0)
    for _ in range(_ACTS):
        weather.act()
        storm.run(storm.chance.choice((0.0, 0.02, 0.1, 1.0)) * storm.chance.random())
    weather.heal()
    return storm

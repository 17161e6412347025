"""Workloads of clients on one node that is killed and stopped: without replicas, much happens in a second."""

from __future__ import annotations

from dataclasses import replace

from strandline.sim.search.faults import FaultMix
from strandline.sim.search.scenario import Scenario, shipped

_ONE_NODE = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
_FAULTS = FaultMix(
    kinds=("kill", "kill-in-disk-operation", "stop", "pause", "break-connections", "break-connections"),
    count=4,
    every_s=1.5,
    seconds=(0.0, 3.0),
)


def plans() -> list[Scenario]:
    return [
        replace(
            shipped()[name],
            name=f"{name}, one node",
            nodes=1,
            controllers=0,
            settings=_ONE_NODE,
            faults=_FAULTS,
        )
        for name in ("loops", "transactions", "groups")
    ]

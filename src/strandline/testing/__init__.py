"""For users' tests: an embedded broker, started in a fraction of a second.

    async with broker() as b:                 # on the running loop
        ... b.bootstrap ...

    with running_broker() as b:               # in a process of its own, from any code
        ... b.bootstrap ...

    with cluster(nodes=3) as c:               # three processes, any of which may be killed and started again
        ... c.bootstrap ...

    with b.faults.drop_response("OffsetCommit", group="g") as fault:     # faults on any of them: `testing.faults`
        ... fault.fired ...

    b.produce("orders", ["a", ("key", "b")])          # any of them writes, reads and compares records
    b.expect("orders", ["a", "b"], within=5)

The pytest plugin (installed with the package) offers the fixtures `strandline_broker`, `strandline_module_broker`,
`strandline_own_broker`, `strandline_async_broker`, `strandline_cluster`, `strandline_module_cluster`,
`strandline_faults`, `strandline_registry`, `strandline_topic` and `strandline_topic_factory`. Brokers take settings
from the ini file (`strandline_settings`) and from the marker of a test or module
(`strandline_settings(num_partitions=3)`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from strandline.testing.broker_thread import broker_in_thread
    from strandline.testing.clocked import ClockedBroker, clocked_broker
    from strandline.testing.clusters import Cluster, ClusterNode, cluster, running_cluster
    from strandline.testing.embedded import BrokerHalted, EmbeddedBroker, broker
    from strandline.testing.faults import BrokerFault, BrokerFaults, FaultError
    from strandline.testing.process import BrokerDied, BrokerProcess, running_broker
    from strandline.testing.records import NewRecord
    from strandline.testing.registry_process import RegistryProcess, running_registry

__all__ = [
    "BrokerDied",
    "BrokerFault",
    "BrokerFaults",
    "BrokerHalted",
    "BrokerProcess",
    "ClockedBroker",
    "Cluster",
    "ClusterNode",
    "EmbeddedBroker",
    "FaultError",
    "NewRecord",
    "RegistryProcess",
    "broker",
    "broker_in_thread",
    "clocked_broker",
    "cluster",
    "running_broker",
    "running_cluster",
    "running_registry",
]

# These names are loaded when they are used, because pytest imports this package, for its plugin, in every run of every
# project.
_HOMES = {
    "BrokerDied": "process",
    "NewRecord": "records",
    "broker_in_thread": "broker_thread",
    "BrokerHalted": "embedded",
    "BrokerProcess": "process",
    "ClockedBroker": "clocked",
    "Cluster": "clusters",
    "ClusterNode": "clusters",
    "EmbeddedBroker": "embedded",
    "BrokerFault": "faults",
    "FaultError": "faults",
    "BrokerFaults": "faults",
    "broker": "embedded",
    "clocked_broker": "clocked",
    "cluster": "clusters",
    "RegistryProcess": "registry_process",
    "running_broker": "process",
    "running_cluster": "clusters",
    "running_registry": "registry_process",
}

if not TYPE_CHECKING:  # a checker that sees this would let any name pass
    __getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

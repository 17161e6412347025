"""What users import in their tests: an embedded broker, started in a fraction of a second.

    async with broker() as b:                 # on the running loop
        ... b.bootstrap ...

    with running_broker() as b:               # in a process of its own, from any code
        ... b.bootstrap ...

    with cluster(nodes=3) as c:               # three processes, any of which may be killed and started again
        ... c.bootstrap ...

The pytest plugin (installed with the package) offers the fixtures `strandline_broker`, `strandline_cluster` and
`strandline_topic`.
"""

from __future__ import annotations

from strandline.testing.clusters import Cluster, ClusterNode, cluster, running_cluster
from strandline.testing.embedded import BrokerHalted, EmbeddedBroker, broker
from strandline.testing.process import BrokerProcess, running_broker

__all__ = [
    "BrokerHalted",
    "BrokerProcess",
    "Cluster",
    "ClusterNode",
    "EmbeddedBroker",
    "broker",
    "cluster",
    "running_broker",
    "running_cluster",
]

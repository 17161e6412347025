"""What users import in their tests: an embedded broker, started in a fraction of a second.

    async with broker() as b:                 # on the running loop
        ... b.bootstrap ...

    with running_broker() as b:               # in a process of its own, from any code
        ... b.bootstrap ...

The pytest plugin (installed with the package) offers the fixtures `strandline_broker` and `strandline_topic`.
"""

from __future__ import annotations

from strandline.testing.cluster import Cluster, ClusterNode, running_cluster
from strandline.testing.embedded import EmbeddedBroker, broker
from strandline.testing.process import BrokerProcess, running_broker

__all__ = [
    "BrokerProcess",
    "Cluster",
    "ClusterNode",
    "EmbeddedBroker",
    "broker",
    "running_broker",
    "running_cluster",
]

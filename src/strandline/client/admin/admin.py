"""The admin client: describes a cluster, and changes it.

    async with Admin(bootstrap_servers="localhost:9092") as admin:
        await admin.create_topic("orders", partitions=6)
        print(await admin.describe_cluster())

The calls are in modules by subject; `calls` says how they are repeated and how they fail.
"""

from __future__ import annotations

from strandline.client.admin.access import AccessAdmin
from strandline.client.admin.calls import PartialFailureError
from strandline.client.admin.cluster import ClusterAdmin
from strandline.client.admin.configs import ConfigAdmin, ConfigChange, ConfigResource
from strandline.client.admin.groups import CommittedOffset
from strandline.client.admin.lag import LagAdmin
from strandline.client.admin.producers import ProducerAdmin
from strandline.client.admin.quorum import QuorumAdmin
from strandline.client.admin.tokens import TokenAdmin
from strandline.client.admin.topics import NewTopic

__all__ = ["Admin", "CommittedOffset", "ConfigChange", "ConfigResource", "NewTopic", "PartialFailureError"]


class Admin(LagAdmin, ConfigAdmin, ClusterAdmin, QuorumAdmin, ProducerAdmin, AccessAdmin, TokenAdmin):
    """Every admin call in one object."""

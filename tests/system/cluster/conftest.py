"""One cluster for all stories that leave it whole, and one whose controllers are apart from its brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline.testing.clusters import Cluster, running_cluster
from tests.system.cluster.story import heal

SESSION_TIMEOUT_MS = 3000


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[Cluster]:
    with running_cluster(
        nodes=3,
        broker_session_timeout_ms=str(SESSION_TIMEOUT_MS),
        broker_heartbeat_interval_ms="500",
        replica_selector_class="org.apache.kafka.common.replica.RackAwareReplicaSelector",
        auto_leader_rebalance_enable="false",
    ) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    heal(shared_cluster)
    return shared_cluster

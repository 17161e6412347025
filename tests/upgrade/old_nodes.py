"""Nodes of a cluster that run the code of 0.1.0."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strandline.testing.clusters import Cluster, ClusterNode
from tests.system.cluster.story import until_in_sync
from tests.upgrade.old_revision import V0_1_0, source_of


@contextmanager
def old_code(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nodes that are launched here run 0.1.0."""
    with patch.context() as inner:
        path = (str(source_of(V0_1_0)), os.environ.get("PYTHONPATH"))
        inner.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        yield


def runs_old_code(node: ClusterNode) -> bool:
    return str(source_of(V0_1_0)).encode() in Path(f"/proc/{node.pid}/environ").read_bytes()


def restart(nodes: Cluster, node: ClusterNode, topic: str) -> None:
    assert node.stop() == 0
    node.start()
    until_in_sync(nodes, topic, (1, 2, 3))

"""The interface of the metadata quorum's shell for its parts."""

from __future__ import annotations

from typing import Protocol

from strandline.broker.metadata.raft_endpoints import RaftEndpoints
from strandline.broker.tasks import TaskScope
from strandline.quorum.core import Quorum
from strandline.quorum.messages import Event


class RaftShell(Protocol):
    """Steps the core of the quorum, and owns the tasks that carry out its effects."""

    @property
    def core(self) -> Quorum:
        """The core, for reading: it changes only by `step`."""

    @property
    def cluster_id(self) -> str: ...

    @property
    def addresses(self) -> RaftEndpoints: ...

    @property
    def tasks(self) -> TaskScope: ...

    @property
    def is_stopped(self) -> bool: ...

    def step(self, event: Event) -> None:
        """Hands the event to the core and carries out its effects; does nothing once the node is stopped."""

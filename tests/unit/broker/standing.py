"""A partition that nothing is replicated of: what is appended to it is not committed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from strandline.broker.replication.replica import Replica
from tests.unit.broker.world import World


@contextmanager
def high_watermark_stands(world: World, topic: str) -> Iterator[Replica]:
    """Keeps the high watermark of the topic's first partition; its waiters look again when it moves on."""
    standing = world.broker.replicas.get(topic, 0)
    assert standing is not None
    mark, original = standing.high_watermark, Replica.high_watermark
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Replica,
            "high_watermark",
            property(lambda self: mark if self is standing else original.fget(self)),  # type: ignore[attr-defined]
        )
        yield standing
    standing.wake_all()


async def a_while() -> None:
    """As many turns of the loop as a response takes, and some more: a clock would not say whether it had its turn."""
    for _ in range(200):
        await asyncio.sleep(0)

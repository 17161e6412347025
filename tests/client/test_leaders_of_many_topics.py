"""Admin calls for many topics get their metadata with one request, and not with one for each topic."""

from __future__ import annotations

import asyncio

import pytest

from strandline.base.ids import TopicPartition
from strandline.client import Admin, NewTopic
from strandline.client.net.cluster import ClusterClient
from strandline.testing import running_broker

TOPICS = 200
REFRESHES_MAX = 5


def test_the_leaders_of_many_topics_need_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"t-{number}" for number in range(TOPICS)]
    refreshes = 0
    refresh = ClusterClient.refresh

    async def counted(self: ClusterClient, deadline: float) -> None:
        nonlocal refreshes
        refreshes += 1
        await refresh(self, deadline)

    async def ask(bootstrap: str) -> None:
        async with Admin(bootstrap_servers=bootstrap) as admin:
            await admin.create_topics([NewTopic(name, 1) for name in names])
            monkeypatch.setattr(ClusterClient, "refresh", counted)
            found = await admin.describe_producers([TopicPartition(name, 0) for name in names])
            assert len(found) == TOPICS

    with running_broker() as broker:
        asyncio.run(ask(broker.bootstrap))
    assert 0 < refreshes <= REFRESHES_MAX

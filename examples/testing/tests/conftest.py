from __future__ import annotations

import pytest


@pytest.fixture
def orders(strandline_topic_factory):
    """A topic of three partitions, which is there before the test begins, and is deleted at the end of the run."""
    return strandline_topic_factory(partitions=3, configs={"retention.ms": -1})


@pytest.fixture
def invoices(strandline_topic_factory):
    return strandline_topic_factory()

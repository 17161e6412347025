"""The calls of each asyncio client, made blocking by `BlockingClient` when they are looked up.

`calls.pyi` beside this names them with their types. `make docs` generates it from the asyncio clients, and a test fails
when it is out of date.
"""

from __future__ import annotations

from strandline.client.sync.blocking import BlockingClient


class AdminCalls(BlockingClient):
    """The calls of `strandline.client.Admin`."""


class ConsumerCalls(BlockingClient):
    """The calls of `strandline.client.Consumer`."""


class ProducerCalls(BlockingClient):
    """The calls of `strandline.client.Producer`."""

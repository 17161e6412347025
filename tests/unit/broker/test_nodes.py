"""Connections to other nodes that come when nobody wants them any more."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from strandline.broker.nodes import NodeClient
from strandline.rpc.channel import Channel, ChannelClosed
from strandline.wire.api.k18_api_versions import ApiVersionsRequest


class SlowNetwork:
    """Connects when it is told to, and says what became of connections."""

    def __init__(self) -> None:
        self.may_connect = asyncio.Event()
        self.may_return = asyncio.Event()
        self.made = 0
        self.aborted = 0

    async def connect(self, _host: str, _port: int, channel: Channel, _tls: object = None) -> None:
        await self.may_connect.wait()
        connection: Any = SimpleNamespace(abort=self._abort)
        channel.connected(connection)
        self.made += 1
        await self.may_return.wait()

    def _abort(self) -> None:
        self.aborted += 1


@pytest.mark.parametrize("how", ["closed", "cancelled"])
def test_a_connection_that_comes_too_late_is_not_kept(how: str) -> None:
    async def main() -> None:
        network: Any = SlowNetwork()
        client = NodeClient(network, "test", "h", 1)
        call = asyncio.get_running_loop().create_task(client.call(ApiVersionsRequest(), 0, 60))
        network.may_connect.set()
        while not network.made:
            await asyncio.sleep(0)
        if how == "closed":
            client.close()
            network.may_return.set()
        else:
            call.cancel()
        with pytest.raises(ChannelClosed if how == "closed" else asyncio.CancelledError):
            await call
        assert network.aborted == network.made == 1

    asyncio.run(main())


def test_a_closed_client_connects_no_more() -> None:
    async def main() -> None:
        network: Any = SlowNetwork()
        client = NodeClient(network, "test", "h", 1)
        client.close()
        with pytest.raises(ChannelClosed):
            await client.call(ApiVersionsRequest(), 0, 60)
        assert not network.made

    asyncio.run(main())

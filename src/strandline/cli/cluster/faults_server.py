"""`up --nodes N --faults-port`: the HTTP resources for faults of a cluster, in a thread of their own.

Besides the resources of each node there are POST /nodes/ID/kill, /pause, /resume and /start, POST /links/cut with
{"from": 1, "to": 2, "one_way": true}, POST /links/cut_off with {"node": 1}, POST /links/heal.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from strandline.node.faults.http_api import FaultsApi
from strandline.node.faults.rule import FaultError
from strandline.testing.clusters import Cluster

_START_S: Final = 10.0
_HELP: Final = (
    "a cluster has /nodes/ID/faults, /nodes/ID/disk, POST /nodes/ID/kill, pause, resume or start, "
    "POST /links/cut, cut_off or heal"
)


class ClusterFaultsServer:
    """An HTTP server that listens from its construction on. Raises OSError if the port is in use."""

    def __init__(self, cluster: Cluster, port: int) -> None:
        self._cluster = cluster
        self._loop = asyncio.new_event_loop()
        self._api = FaultsApi(self._do, lambda error: print(f"faults: {error!r}", file=sys.stderr), self._act)
        threading.Thread(target=self._loop.run_forever, name="faults", daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._api.listen(port), self._loop).result(_START_S)

    @property
    def url(self) -> str:
        return self._api.url

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._api.close)
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _do(self, node_id: int | None, command: Mapping[str, Any]) -> dict[str, Any]:
        if node_id is None:
            raise FaultError(f"name the node: {_HELP}")
        return await asyncio.to_thread(self._cluster.node(node_id).control, command)

    async def _act(self, action: tuple[str, ...], body: Mapping[str, Any]) -> dict[str, Any]:
        match action:
            case ("nodes", number, ("kill" | "pause" | "resume" | "start") as name) if number.isdecimal():
                node = self._cluster.node(int(number))
                if name != "start" and not node.is_running:
                    raise RuntimeError(f"node {number} does not run: start it first")
                await asyncio.to_thread(getattr(node, name))
            case ("links", "cut"):
                _check_names(body, "from", "to", "one_way")
                one, other, one_way = _node(body, "from"), _node(body, "to"), body.get("one_way", False)
                if one == other:
                    raise FaultError("a link is between two nodes: from and to are the same")
                if not isinstance(one_way, bool):
                    raise FaultError(f"one_way must be true or false, not {one_way!r}")
                await self._links(lambda: self._cluster.cut(one, other, one_way=one_way))
            case ("links", "cut_off"):
                _check_names(body, "node")
                node_id = _node(body, "node")
                await self._links(lambda: self._cluster.cut_off(node_id))
            case ("links", "heal"):
                await self._links(self._cluster.heal)
            case _:
                raise LookupError(f"there is nothing at POST /{'/'.join(action)}: {_HELP}")
        return {"done": True}

    async def _links(self, change: Callable[[], None]) -> None:
        await asyncio.to_thread(change)


def _check_names(body: Mapping[str, Any], *known: str) -> None:
    for name in body:
        if name not in known:
            raise FaultError(f"there is no {name!r} here: there is {', '.join(known)}")


def _node(body: Mapping[str, Any], name: str) -> int:
    number = body.get(name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise FaultError(f"{name} must be the number of a node, not {number!r}")
    return number

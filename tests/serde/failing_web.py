"""The port `Web` with a switch: the registry can be away, and requests are counted."""

from __future__ import annotations

from typing import Any

from strandline.node.web import RealWeb
from strandline.ports.web import WebError, WebResponse


class FailingWeb:
    def __init__(self) -> None:
        self.is_away = False
        self.requests: list[str] = []
        self._web = RealWeb()

    async def request(self, method: str, url: str, **more: Any) -> WebResponse:
        self.requests.append(f"{method} {url.partition('//')[2].partition('/')[2]}")
        if self.is_away:
            raise WebError(f"{url}: connection refused")
        return await self._web.request(method, url, **more)

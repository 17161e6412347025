"""The port `Web` of this machine. The client of HTTP is loaded with the first request: most processes make none."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.ports.tls import Tls
from strandline.ports.web import NO_HEADERS, WebResponse


class RealWeb:
    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        timeout_s: float = 30.0,
        tls: Tls | None = None,
    ) -> WebResponse:
        from strandline.node.http.client import request

        return await request(method, url, headers, body, timeout_s, tls)

"""Requests to other HTTP servers, such as token endpoints and schema registries."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from strandline.ports.tls import Tls

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class WebError(OSError):
    """A URL cannot be reached, or its response is not HTTP. The text names the URL without its query."""


class WebResponse(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Web(Protocol):
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
        """Returns the response, with any status; redirects are not followed. Raises WebError.

        `tls` is a context for https; without one the system's certificate authorities are trusted.
        """
        ...

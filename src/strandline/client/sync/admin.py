"""The blocking admin client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from strandline.client.admin.admin import Admin as AsyncAdmin
from strandline.client.config.keywords import AdminKeywords
from strandline.client.sync.blocking import calls_of
from strandline.client.sync.calls import AdminCalls


@calls_of(AsyncAdmin)
class Admin(AdminCalls):
    """Every admin call in one object, blocking: `strandline.client.Admin` for code that blocks."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, **keywords: Unpack[AdminKeywords]
    ) -> None:
        """Takes settings as the asyncio client does, and connects."""
        super().__init__(lambda: AsyncAdmin(settings, **keywords))

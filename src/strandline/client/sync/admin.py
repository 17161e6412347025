"""The blocking admin client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strandline.client.admin.admin import Admin as AsyncAdmin
from strandline.client.sync.calls import AdminCalls


class Admin(AdminCalls):
    """`strandline.client.Admin`, blocking."""

    def __init__(self, settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        super().__init__(lambda: AsyncAdmin(settings, **keywords))

"""The OpenAPI document of the interface."""

from __future__ import annotations

from typing import Any

from strandline import __version__


def openapi_document() -> dict[str, Any]:
    return {"openapi": "3.0.3", "info": {"title": "Schema registry", "version": __version__}, "paths": {}}

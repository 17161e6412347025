"""The admin client's settings."""

from __future__ import annotations

from typing import Final

from strandline.client.config.shared_keys import COMMON_KEYS, DEFAULT_API_TIMEOUT
from strandline.config.definition import INT, LOW, ConfigKey, active, between

ADMIN_KEYS: Final[tuple[ConfigKey, ...]] = (
    *COMMON_KEYS,
    DEFAULT_API_TIMEOUT,
    active("retries", INT, (1 << 31) - 1, between(0, (1 << 31) - 1), LOW).documented(
        "How often a request is sent again; default.api.timeout.ms is the better bound."
    ),
)

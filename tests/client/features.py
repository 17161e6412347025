"""Which version of transactions a cluster speaks."""

from __future__ import annotations

import asyncio

from strandline.client import Admin

FEATURE = "transaction.version"


async def set_transaction_version(bootstrap: str, level: int) -> None:
    """Raises or lowers the cluster's transaction.version, and returns when brokers say so."""
    async with Admin(bootstrap_servers=bootstrap) as admin:
        current = (await admin.describe_features()).finalized.get(FEATURE, 0)
        if current != level:
            kind = "upgrade" if level > current else "safe-downgrade"
            await admin.update_features({FEATURE: level}, kind=kind)
        for _ in range(600):
            if (await admin.describe_features()).finalized.get(FEATURE, 0) == level:
                return
            await asyncio.sleep(0.05)
    raise AssertionError("the feature did not change")

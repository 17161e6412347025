"""A broker on the loop of the test itself."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from strandline.config import BrokerConfig
from strandline.node import launcher


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedBroker:
    bootstrap: str
    data_dir: Path


@asynccontextmanager
async def broker(*, data_dir: Path | None = None, **settings: str) -> AsyncIterator[EmbeddedBroker]:
    """A broker on a free port of the loopback interface; settings by Kafka's names, with `_` for `.`.

    Without `data_dir` its data is gone at the end.
    """
    where = data_dir or Path(tempfile.mkdtemp(prefix="strandline-test-"))
    given = launcher.embedded_settings(port=0, data=str(where), host="127.0.0.1") | by_kafka_names(settings)
    node = launcher.RunningNode(
        BrokerConfig(given), launcher.stderr_events(node=int(given["node.id"]), level="warn")
    )
    await node.start()
    try:
        yield EmbeddedBroker(bootstrap=node.bootstrap, data_dir=where)
    finally:
        await node.stop()
        if data_dir is None:
            shutil.rmtree(where, ignore_errors=True)


def by_kafka_names(settings: dict[str, str]) -> dict[str, str]:
    """`num_partitions=3` for `num.partitions=3`: Python has no dots in names."""
    return {name.replace("_", "."): str(value) for name, value in settings.items()}

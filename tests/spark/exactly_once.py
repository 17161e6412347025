"""A topic that a query copies exactly once, and what its copy must hold."""

from __future__ import annotations

from collections import Counter

from strandline.client.sync import Producer
from tests.spark.topics import rows_of

PARTITIONS = 3


def fill(bootstrap: str, topic: str, numbers: range, *, keyed: bool) -> None:
    """With keys the sink shuffles rows, after a first attempt that it aborts; without it writes them in place."""
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, b"key-%d" % (number % 17) if keyed else None)


def assert_exact(bootstrap: str, target: str, count: int, why: str) -> None:
    counted = Counter(int(row.value) for row in rows_of(bootstrap, target, PARTITIONS))
    missing = sorted(set(range(count)) - set(counted))
    repeated = sorted(number for number, times in counted.items() if times > 1)
    assert not missing, f"{why}: {len(missing)} records are missing, such as {missing[:5]}"
    assert not repeated, f"{why}: {len(repeated)} records are there twice, such as {repeated[:5]}"

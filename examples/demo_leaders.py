"""Who leads the partitions of the demo's topic, watched by asking the cluster several times a second."""

from __future__ import annotations

import threading
import time

from demo_picture import NOBODY, Led

from strandline.client import KafkaError
from strandline.client.sync import Admin

LOOK_AGAIN_SECONDS = 0.1


class LeaderWatch:
    """Notes each change of a leader, on a thread of its own."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._began_at = 0.0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leaders")
        self.changes: list[Led] = []
        self.now: dict[int, int] = {}  # by partition

    def start(self, began_at: float) -> None:
        self._began_at = began_at
        self._thread.start()

    def finish(self) -> None:
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        with Admin(bootstrap_servers=self._bootstrap) as admin:
            while not self._ending.wait(LOOK_AGAIN_SECONDS):
                try:
                    described = admin.describe_topics([self._topic], timeout=2.0)[self._topic]
                except (KafkaError, TimeoutError):
                    continue  # the broker that was asked has just been killed
                self._note({each.partition: each.leader_id for each in described.partitions})

    def _note(self, leaders: dict[int, int]) -> None:
        at = time.monotonic() - self._began_at
        for partition, leader in sorted(leaders.items()):
            if self.now.get(partition) != leader:
                self.now[partition] = leader
                self.changes.append(Led(at=at, partition=partition, broker=max(leader, NOBODY)))

"""The whole story: three brokers, orders with acks=all, a pipeline on Spark exactly once, kills, and an audit.

`make demo` runs this. While orders are written, the leader of the busiest partition and then the Spark driver are
killed with `kill -9`; the driver is started again. The exit status says whether every acknowledged order is in the log
where its producer was told, and came out of the pipeline once.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo_orders import TOPIC, OrderProducer
from demo_picture import Batch, Timeline, as_svg, as_text

from strandline.client.sync import Admin
from strandline.pipeline.audit.audit import Audit, run_audit
from strandline.pipeline.audit.report import AuditReport
from strandline.pipeline.runtime.session import start_session
from strandline.testing import cluster
from strandline.testing.clusters import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 30_000
PRODUCING_SECONDS = 20.0
BATCHES = 4
PARTITIONS = 3
GROUP = "orders-pipeline"
# What the pipeline makes of an order: it passes, or it is a dead letter.
OUTPUT = ("orders.enriched", "orders.dlq")
# Nothing here takes so long, unless something is stuck.
SECONDS_MAX = 900
# JVMs that live for half a minute: what the second compiler would gain is less than it costs.
SPARK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
}
PIPELINE = Path(__file__).parent / "pipelines"


class Driver:
    """`strandline pipeline run` in a process group of its own, which is what `kill -9` meets, and its events."""

    def __init__(self, number: int, spec: Path, trigger: str, environment: dict[str, str], log: Path) -> None:
        self.number = number
        self.batches: list[dict[str, Any]] = []
        self._log = log
        command = [sys.executable, "-m", "strandline.cli.main", "pipeline", "run", "--json", str(spec)]
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **environment, "TRIGGER": trigger},
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            if event["event"] == "batch":
                self.batches.append(event)
                say(
                    f"  driver {self.number}: batch {event['batch']}, {sum(event['records'].values()):,} records"
                )

    def check(self) -> None:
        """Raises if it has ended by itself."""
        status = self._process.poll()
        if status is not None:
            raise RuntimeError(f"the pipeline ended with {status}:\n{self._log.read_text()[-3000:]}")

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def wait(self) -> None:
        """Until it is done."""
        if self._process.wait(SECONDS_MAX) != 0:
            self.check()
        self._reader.join()

    def end(self) -> None:
        if self._process.poll() is None:
            self.kill()


class Demo:
    def __init__(self, nodes: Cluster, home: Path, records: int) -> None:
        self._nodes = nodes
        self._home = home
        self._began_at, self._began_wall = time.monotonic(), time.time()
        self._drivers: list[Driver] = []
        self.ledger = home / "ledger.jsonl"
        self.producer = OrderProducer(nodes.bootstrap, records, PRODUCING_SECONDS, self.ledger)
        self.timeline = Timeline(acknowledged=self.producer.acknowledged)
        self._spec = self._prepare_spec(records)

    def _prepare_spec(self, records: int) -> Path:
        """The shipped pipeline with smaller batches, so that there is a middle in which to kill."""
        for file in PIPELINE.glob("orders*"):
            text = file.read_text()
            if file.suffix == ".yaml":
                # A share is rounded down for each partition: with one record more for each nothing is left over.
                size = records // BATCHES + PARTITIONS
                text = text.replace("max-records-per-batch: 5000", f"max-records-per-batch: {size}")
                text += "\ntrigger: ${TRIGGER}\nspark:\n  settings:\n"
                text += "".join(f"    {name}: {json.dumps(value)}\n" for name, value in SPARK.items())
            (self._home / file.name).write_text(text)
        return self._home / "orders.yaml"

    @property
    def now(self) -> float:
        return time.monotonic() - self._began_at

    def run(self) -> None:
        try:
            self._story()
        finally:
            for driver in self._drivers:
                driver.end()
            self.producer.finish()

    def _story(self) -> None:
        self._create_topics()
        say(f"orders are written with acks=all, {self.producer.count:,} in about {PRODUCING_SECONDS:.0f} s")
        self.producer.start(self._began_at)
        first = self._drive("every 1 seconds")
        self._until(lambda: len(first.batches) >= 1, first)
        self._kill_leader()
        batches = len(first.batches)
        self._until(lambda: len(first.batches) > batches, first)
        first.kill()
        self._note_kill("Spark driver")
        self.producer.open_gate()
        while True:
            was_done = self.producer.is_done
            successor = self._drive("available-now")
            successor.wait()
            if was_done or self._read_all(successor):
                break
        self.timeline.ended = self.now
        self.timeline.batches = [
            self._batch(driver, each) for driver in self._drivers for each in driver.batches
        ]

    def _create_topics(self) -> None:
        with Admin(bootstrap_servers=self._nodes.bootstrap) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS)
            admin.create_topic("customers", partitions=1, configs={"cleanup.policy": "compact"})
            # The first who asks for a group's offsets has their topic made, which takes all three brokers.
            admin.list_group_offsets(GROUP)
        self.producer.write_customers()

    def _drive(self, trigger: str) -> Driver:
        environment = {"BROKERS": self._nodes.bootstrap, "CHECKPOINT": str(self._home / "checkpoint")}
        number = len(self._drivers) + 1
        driver = Driver(number, self._spec, trigger, environment, self._home / "driver.log")
        self._drivers.append(driver)
        say(f"Spark driver {number} starts")
        return driver

    def _until(self, condition: Callable[[], bool], driver: Driver) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            driver.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing happened for {SECONDS_MAX} s")
            time.sleep(0.02)

    def _kill_leader(self) -> None:
        with Admin(bootstrap_servers=self._nodes.bootstrap) as admin:
            partitions = admin.describe_topics([TOPIC])[TOPIC].partitions
            ends = {each.partition: self._end_of(admin, each.partition) for each in partitions}
            busiest = max(ends, key=lambda partition: ends[partition])
            leader = next(each.leader_id for each in partitions if each.partition == busiest)
        self._nodes.node(leader).kill()
        self._note_kill(f"broker {leader}, which leads {TOPIC}-{busiest}")

    def _end_of(self, admin: Any, partition: int) -> int:
        from strandline.base.ids import TopicPartition
        from strandline.client.admin.topics import LATEST

        where = TopicPartition(TOPIC, partition)
        end: int = admin.list_offsets({where: LATEST})[where].offset
        return end

    def _note_kill(self, what: str) -> None:
        self.timeline.kills.append((self.now, what))
        say(f"kill -9: {what}")

    def _read_all(self, driver: Driver) -> bool:
        """Whether nothing was left when the driver ended, and nothing comes any more."""
        return self.producer.is_done and bool(driver.batches) and driver.batches[-1]["lag"] == 0

    def _batch(self, driver: Driver, event: dict[str, Any]) -> Batch:
        ended = datetime.fromisoformat(event["at"]).timestamp() - self._began_wall
        records = sum(event["records"].values())
        return Batch(driver=driver.number, began=ended - event["seconds"], ended=ended, records=records)


def say(text: str) -> None:
    print(text, flush=True)


def figures(demo: Demo) -> None:
    timeline, producer = demo.timeline, demo.producer
    longest = max(producer.longest_wait.values(), default=0.0)
    driver_killed_at = timeline.kills[-1][0]
    again = min((each.ended for each in timeline.batches if each.ended > driver_killed_at), default=0.0)
    times = sorted(each.ended - each.began for each in timeline.batches)
    say("")
    say(as_text(timeline))
    say("")
    say(f"longest wait for an acknowledgement while leaders changed: {longest:.2f} s")
    say(
        f"from the driver's death to the next committed batch: {again - driver_killed_at:.1f} s, a new JVM included"
    )
    say(
        f"{len(times)} batches of {times[0]:.1f} to {times[-1]:.1f} s; the first of each driver is the longest"
    )


def audits(spark: SparkSession, bootstrap: str, ledger: Path, threads: Executor) -> list[AuditReport]:
    """What the producer was told beside the topic that it wrote, and beside what the pipeline made of it."""
    common: dict[str, Any] = {
        "ledger": str(ledger),
        "bootstrap_servers": bootstrap,
        "record_id": "cast(key as string)",
    }
    wanted = (Audit(**common), Audit(**common, topics=OUTPUT, with_order=False))
    return list(threads.map(lambda audit: run_audit(spark, audit), wanted))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help=f"orders to write (default: {RECORDS})")
    parser.add_argument("--picture", default="strandline-demo.svg", help="where the timeline's picture goes")
    options = parser.parse_args()
    began = time.monotonic()
    say("Strandline demo: three brokers, librdkafka, a pipeline on Spark, and two kills\n")
    with ThreadPoolExecutor() as threads, ExitStack() as stack:
        # The audit's Spark starts meanwhile: a JVM needs seconds for that, and waits most of the time.
        auditor = threads.submit(start_session, "strandline demo", "local[*]", SPARK)
        stack.callback(lambda: auditor.result().stop())
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-demo-"))
        nodes = stack.enter_context(cluster(nodes=3))
        say(f"three brokers are ready after {time.monotonic() - began:.1f} s: {nodes.bootstrap}")
        demo = Demo(nodes, Path(directory), options.records)
        demo.run()
        figures(demo)
        Path(options.picture).write_text(as_svg(demo.timeline))
        say(f"the same as a picture: {options.picture}\n\nthe audit, on Spark:")
        into, out = audits(auditor.result(), nodes.bootstrap, demo.ledger, threads)
    say(f"{into.as_text()}\n\n{out.as_text()}\n")
    acknowledged = demo.producer.total
    held = into.held and out.held and acknowledged == options.records == into.read == out.read
    say(
        f"{acknowledged:,} acknowledged, {out.read:,} out, {into.counts['lost'] + out.counts['lost']} lost, "
        f"{into.counts['duplicated'] + out.counts['duplicated']} duplicated, in {time.monotonic() - began:.0f} s"
    )
    say("VERDICT: held" if held else "VERDICT: BROKEN")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())

"""The whole story: three brokers, orders with acks=all, a pipeline on Spark exactly once, kills, and an audit.

`make demo` runs this. Orders are written from the first second on. In the middle of that the leader of the busiest
partition and then the Spark driver are killed with `kill -9`; both are started again. The exit status says whether
every acknowledged order is in the log where its producer was told, and came out of the pipeline once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo_driver import SECONDS_MAX, Driver
from demo_leaders import LeaderWatch
from demo_orders import TOPIC, OrderProducer
from demo_picture import Batch, Timeline, as_svg, as_text

from strandline.base.ids import TopicPartition
from strandline.client.admin.topics import LATEST
from strandline.client.sync import Admin
from strandline.pipeline.audit.audit import Audit, run_audit
from strandline.pipeline.audit.report import AuditReport
from strandline.pipeline.runtime.session import start_session
from strandline.testing import Cluster, cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATE = 1000
PARTITIONS = 3
# So many batches a driver has committed before something is killed, and before the orders end.
BATCHES_BEFORE = 2
# A batch begins within a second after the last one; this far into it the driver is killed.
INTO_A_BATCH_SECONDS = 1.5
SAY_EVERY_SECONDS = 5.0
# Nothing is left to read if no batch came for so long after the last order.
QUIET_SECONDS = 20.0
GROUP = "orders-pipeline"
# Every order comes out in one of these: it passes, or it is a dead letter.
OUTPUT = ("orders.enriched", "orders.dlq")
# JVMs that live for half a minute: what the second compiler would gain is less than it costs.
SPARK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
}
PIPELINE = Path(__file__).parent / "pipelines"

INTRODUCTION = """\
Strandline demo: two crashes in the middle of the work, and a proof that nothing was lost

  orders    A program writes {rate:,} orders a second to a topic with three partitions. Three brokers keep it; an order
            counts as written when it is acknowledged, which takes every broker that is in sync (acks=all).
  pipeline  Spark reads the orders in batches, checks them, adds the customer's name and region, and writes the results
            to other topics, each exactly once. Broken orders become dead letters.
  crashes   kill -9 of the broker that leads the busiest partition, then of Spark's driver in the middle of a batch.
  audit     At the end every acknowledged order is looked up: is it in the log, at the offset that was acknowledged, and
            did it come out of the pipeline, once?

It takes one to three minutes. Orders are written all the time; Spark needs the first 20 to 60 seconds to start.
"""


class Demo:
    def __init__(self, nodes: Cluster, home: Path, rate: int, on_last_order: Callable[[], None]) -> None:
        self._nodes = nodes
        self._home = home
        self._on_last_order = on_last_order
        self._began_at, self._began_wall = time.monotonic(), time.time()
        self._drivers: list[Driver] = []
        self.ledger = home / "ledger.jsonl"
        self.producer = OrderProducer(nodes.bootstrap, rate, self.ledger)
        self.leaders = LeaderWatch(nodes.bootstrap, TOPIC)
        self.timeline = Timeline(acknowledged=self.producer.acknowledged)
        self.killed_driver_at = 0.0
        self._doing = ""
        self._spec = self._prepare_spec(rate)

    def _prepare_spec(self, rate: int) -> Path:
        """The shipped pipeline, with batches of the orders of twenty seconds at most."""
        for file in PIPELINE.glob("orders*"):
            text = file.read_text()
            if file.suffix == ".yaml":
                text = text.replace("max-records-per-batch: 5000", f"max-records-per-batch: {20 * rate}")
                text += "\ntrigger: every 1 seconds\nspark:\n  settings:\n"
                text += "".join(f"    {name}: {json.dumps(value)}\n" for name, value in SPARK.items())
            (self._home / file.name).write_text(text)
        return self._home / "orders.yaml"

    @property
    def now(self) -> float:
        return time.monotonic() - self._began_at

    def run(self) -> None:
        ticking = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(ticking,), name="progress")
        ticker.start()
        try:
            self._story()
        finally:
            ticking.set()
            ticker.join()
            for driver in self._drivers:
                driver.end()
            self.producer.finish()
            self.leaders.finish()

    def _story(self) -> None:
        self._create_topics()
        self._began_at, self._began_wall = time.monotonic(), time.time()
        self.producer.start(self._began_at)
        self.leaders.start(self._began_at)
        self.say("orders begin")
        first = self._drive("Spark's driver is being started")
        self._until(lambda: len(first.events) >= BATCHES_BEFORE, first)
        leader = self._kill_leader()
        batches = len(first.events)
        self._until(lambda: len(first.events) > batches, first)
        time.sleep(INTO_A_BATCH_SECONDS)
        self._kill_driver(first)
        second = self._drive("a second driver is being started")
        self._nodes.node(leader).start()
        self._event(f"broker {leader} is started again and copies what it has missed")
        self._until(lambda: len(second.events) >= BATCHES_BEFORE, second)
        self.producer.end()
        self._until(lambda: self.producer.is_done, second)
        self._event(f"the orders end: {self.producer.total:,} were acknowledged")
        self._doing = "the pipeline reads the rest"
        self._on_last_order()
        self._until(lambda: self._has_read_all(second), second)
        second.stop()
        self.timeline.ended = self.now
        self.timeline.leaders = self.leaders.changes
        committed = [each for driver in self._drivers for each in driver.batches(self._began_wall)]
        self.timeline.batches = [*committed, self._killed_batch]

    def _create_topics(self) -> None:
        self._nodes.create_topic(TOPIC, partitions=PARTITIONS, replication_factor=3)
        self._nodes.create_topic("customers", configs={"cleanup.policy": "compact"})
        with Admin(bootstrap_servers=self._nodes.bootstrap) as admin:
            # The first who asks for a group's offsets has their topic made, which takes all three brokers.
            admin.list_group_offsets(GROUP)
        self.producer.write_customers()

    def _drive(self, doing: str) -> Driver:
        environment = {"BROKERS": self._nodes.bootstrap, "CHECKPOINT": str(self._home / "checkpoint")}
        number = len(self._drivers) + 1
        self._doing = doing
        driver = Driver(number, self._spec, environment, self._home / "driver.log", self._say_batch)
        self._drivers.append(driver)
        self.say(f"{doing}: a JVM and Python processes, which takes a while")
        return driver

    def _until(self, condition: Callable[[], bool], driver: Driver) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            driver.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing happened for {SECONDS_MAX} s")
            time.sleep(0.02)

    def _kill_leader(self) -> int:
        with Admin(bootstrap_servers=self._nodes.bootstrap) as admin:
            wanted = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
            ends = admin.list_offsets(dict.fromkeys(wanted, LATEST))
        busiest = max(wanted, key=lambda where: ends[where].offset).partition
        leader = self.leaders.now[busiest]
        killed_at = self.now
        self._nodes.node(leader).kill()
        self._event(f"kill -9: broker {leader}, which leads {TOPIC}-{busiest}", killed_at)
        return leader

    def _kill_driver(self, driver: Driver) -> None:
        self.killed_driver_at = self.now
        last = driver.batches(self._began_wall)[-1]
        self._killed_batch = Batch(
            number=last.number + 1,
            driver=driver.number,
            began=last.ended,
            ended=self.killed_driver_at,
            records=0,
            is_killed=True,
        )
        driver.kill()
        self._event("kill -9: Spark driver 1, in the middle of a batch", self.killed_driver_at)

    def _has_read_all(self, driver: Driver) -> bool:
        """True if the batches have as many orders as were acknowledged, or nothing is left and nothing comes."""
        seen = {
            event["batch"]: sum(event["records"].values()) for each in self._drivers for event in each.events
        }
        if sum(seen.values()) >= self.producer.total:
            return True
        last = driver.batches(self._began_wall)[-1]
        return driver.events[-1]["lag"] == 0 and self.now - last.ended > QUIET_SECONDS

    # What is printed

    def say(self, text: str) -> None:
        minutes, seconds = divmod(self.now, 60)
        say(f"{minutes:3.0f}:{seconds:04.1f}  {text}")

    def _event(self, what: str, at: float | None = None) -> None:
        self.timeline.events.append((self.now if at is None else at, what))
        self.say(what)

    def _say_batch(self, driver: Driver) -> None:
        event = driver.events[-1]
        self._doing = ""
        self.say(
            f"driver {driver.number} has committed batch {event['batch']}: "
            f"{sum(event['records'].values()):,} orders in {event['seconds']:.1f} s"
        )

    def _tick(self, ending: threading.Event) -> None:
        """Says how far the orders are, every few seconds, and what is being waited for."""
        before, at = 0, self.now
        while not ending.wait(SAY_EVERY_SECONDS):
            if self.producer.is_done:
                if self._doing:
                    self.say(self._doing)
                continue
            total, now = self.producer.total, self.now
            rate = max(0, total - before) / max(now - at, 0.1) if at <= now else 0.0
            before, at = total, now
            self.say(
                f"{total:,} orders acknowledged, {rate:,.0f} a second"
                + (f"; {self._doing}" if self._doing else "")
            )


def say(text: str) -> None:
    print(text, flush=True)


def figures(demo: Demo) -> None:
    timeline, producer = demo.timeline, demo.producer
    longest = max(producer.longest_wait.values(), default=0.0)
    committed = [each for each in timeline.batches if not each.is_killed]
    again = min((each.ended for each in committed if each.ended > demo.killed_driver_at), default=0.0)
    times = sorted(each.ended - each.began for each in committed)
    say("")
    say(as_text(timeline))
    say("")
    say(f"The longest wait for an acknowledgement, while the leader was dead: {longest:.2f} s")
    say(
        f"From the driver's death to the next committed batch: {again - demo.killed_driver_at:.1f} s, "
        "with a new JVM and the batch itself"
    )
    say(
        f"{len(times)} batches took {times[0]:.1f} to {times[-1]:.1f} s; the first of each driver is the longest."
    )


def quiet_session(log: Path) -> SparkSession:
    """A session whose JVM says the usual two lines of every start to a file. Its errors are exceptions here."""
    stderr = os.dup(2)
    try:
        with log.open("w") as file:
            os.dup2(file.fileno(), 2)
        return start_session("strandline demo", "local[*]", SPARK)
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def audits(spark: SparkSession, bootstrap: str, ledger: Path, threads: Executor) -> list[AuditReport]:
    """The acknowledgements beside the topic of orders, and beside the output of the pipeline."""
    common: dict[str, Any] = {
        "ledger": str(ledger),
        "bootstrap_servers": bootstrap,
        "record_id": "cast(key as string)",
    }
    wanted = (Audit(**common), Audit(**common, topics=OUTPUT, with_order=False))
    return list(threads.map(lambda audit: run_audit(spark, audit), wanted))


def judged(demo: Demo, into: AuditReport, out: AuditReport, seconds: float) -> bool:
    """The verdict: every order that was sent is acknowledged, in the log, and in the output, once."""
    producer = demo.producer
    held = into.held and out.held and producer.refused == 0
    held = held and producer.sent == producer.total == into.read == out.read
    lost, duplicated = (into.counts[name] + out.counts[name] for name in ("lost", "duplicated"))
    say(f"{into.as_text()}\n\n{out.as_text()}\n")
    say(
        f"{producer.total:,} acknowledged, {out.read:,} out, {lost} lost, {duplicated} duplicated, in {seconds:.0f} s"
    )
    say("VERDICT: held" if held else "VERDICT: BROKEN")
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=RATE, help=f"orders a second (default: {RATE})")
    parser.add_argument("--picture", default="strandline-demo.svg", help="where the timeline's picture goes")
    options = parser.parse_args()
    if options.rate < 1:
        parser.error("--rate must be 1 or more")
    began = time.monotonic()
    say(INTRODUCTION.format(rate=options.rate))
    with ThreadPoolExecutor() as threads, ExitStack() as stack:
        auditors: list[Future[SparkSession]] = []

        def start_auditor() -> None:
            """The audit's Spark starts while the pipeline reads the rest: a JVM needs seconds for that."""
            auditors.append(threads.submit(quiet_session, Path(directory) / "audit.log"))
            stack.callback(lambda: auditors[0].result().stop())

        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-demo-"))
        nodes = stack.enter_context(cluster(nodes=3))
        say(f"three brokers are ready after {time.monotonic() - began:.1f} s: {nodes.bootstrap}\n")
        demo = Demo(nodes, Path(directory), options.rate, start_auditor)
        demo.run()
        figures(demo)
        Path(options.picture).write_text(as_svg(demo.timeline))
        say(f"The same as a picture, to open in a browser: {options.picture}\n\nThe audit, on Spark:\n")
        into, out = audits(auditors[0].result(), nodes.bootstrap, demo.ledger, threads)
    return 0 if judged(demo, into, out, time.monotonic() - began) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Measures the cost of a scrape: `python -m bench.scrape`, `--partitions N`, `--groups N`.

The node has many partitions and groups. The figures are the time until the page is there, its size, and how long the
loop was held up at a time meanwhile, by its own histogram.
"""

from __future__ import annotations

import argparse
import time
import urllib.request
from statistics import median

from prometheus_client.parser import text_string_to_metric_families

from strandline.client.sync import Admin, Producer
from strandline.testing.process import running_broker

SCRAPES = 20


def page(url: str) -> tuple[float, str]:
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=30) as response:
        text = response.read().decode()
    return time.perf_counter() - began, text


def loop_lag(text: str) -> dict[str, float]:
    """Returns the counts of the loop's histogram, by upper bound."""
    for family in text_string_to_metric_families(text):
        if family.name == "strandline_loop_lag_seconds":
            return {s.labels["le"]: s.value for s in family.samples if s.name.endswith("_bucket")}
    raise LookupError("the page has no strandline_loop_lag_seconds")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scrape", description=__doc__)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=0)
    options = parser.parse_args()
    topics, each = max(options.partitions // 100, 1), min(options.partitions, 100)
    with running_broker(metrics=True) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        for number in range(topics):
            admin.create_topic(f"topic-{number}", partitions=each)
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(topics):
                for partition in range(each):
                    producer.send(f"topic-{number}", b"x", partition=partition)
            producer.flush()
        for number in range(options.groups):
            offsets = {(f"topic-{number % topics}", index): 0 for index in range(50)}
            admin.alter_group_offsets(f"group-{number}", offsets)
        page(broker.metrics_url)
        time.sleep(2)
        before = loop_lag(page(broker.metrics_url)[1])
        taken = []
        for _ in range(SCRAPES):
            seconds, text = page(broker.metrics_url)
            taken.append(seconds)
            time.sleep(0.2)
        after = loop_lag(text)
        series = sum(not line.startswith("#") for line in text.splitlines())
        print(
            f"{topics * each} partitions, {options.groups} groups: {series} series, {len(text) / 1e6:.1f} MB"
        )
        print(
            f"a page takes {median(taken) * 1000:.0f} ms (median of {SCRAPES}; {min(taken) * 1000:.0f} at best)"
        )
        total = after["+Inf"] - before["+Inf"]
        late = total - (after["0.01"] - before["0.01"])
        print(f"of {total:.0f} looks at the loop {late:.0f} found it more than 10 ms late")
        if options.groups:
            began = time.perf_counter()
            found = admin.group_lag()
            print(f"lag of {len(found)} groups over the client: {time.perf_counter() - began:.2f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

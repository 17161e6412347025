"""Measures the cost of ACLs: a broker without an authorizer beside one with 10,000 rules, in pairs.

    python -m bench.authorizer

The clients are the same; one of the 10,000 rules, with a prefix, allows their requests.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.revisions import NEW, OLD, RECORDS, TOPIC, Nodes, consume, create, produce, report
from strandline.client import Acl
from strandline.testing.process import AUTHORIZER_SETTINGS, BrokerProcess

RULES = 10_000
# The CPU time of a process is told in hundredths of a second: each figure is of so many runs.
_TIMES = 4
_ALL = 2
_TOPIC, _GROUP, _CLUSTER = 2, 3, 4
_PREFIXED = 4


def rules() -> list[Acl]:
    """Returns the rules that let the clients work, and many more for other users and other topics."""
    anonymous = "User:ANONYMOUS"
    allowed = [
        Acl(
            resource_type=_TOPIC,
            resource_name=TOPIC[:4],
            pattern_type=_PREFIXED,
            principal=anonymous,
            operation=_ALL,
        ),
        Acl(resource_type=_GROUP, resource_name="*", principal=anonymous, operation=_ALL),
        Acl(resource_type=_CLUSTER, resource_name="kafka-cluster", principal=anonymous, operation=_ALL),
    ]
    for number in range(RULES - len(allowed)):
        principal = anonymous if number % 2 else f"User:{number}"
        pattern = _PREFIXED if number % 3 else 3
        allowed.append(
            Acl(
                resource_type=_TOPIC,
                resource_name=f"topic-{number}",
                pattern_type=pattern,
                principal=principal,
                operation=3,
            )
        )
    return allowed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-authorizer-")))
        brokers = {
            OLD: BrokerProcess(home / "none"),
            NEW: BrokerProcess(home / "ruled", AUTHORIZER_SETTINGS, acls=rules()),
        }
        nodes = {}
        for name, broker in brokers.items():
            broker.format()
            broker.start()
            stack.callback(broker.kill)
            create(broker.bootstrap, 1)
            nodes[name] = Nodes([broker.pid])
        for each in nodes.values():
            each.measured(lambda: 1.0)  # and paused
        scenarios: dict[str, Callable[[str], float]] = {
            "produce": lambda name: sum(produce(brokers[name].bootstrap, RECORDS) for _ in range(_TIMES)),
            "consume": lambda name: sum(consume(brokers[name].bootstrap) for _ in range(_TIMES)),
        }
        figures: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for number in range(options.pairs):
            for scenario, run in scenarios.items():
                for name in (OLD, NEW) if number % 2 else (NEW, OLD):
                    figure = nodes[name].measured(partial(run, name))
                    figures.setdefault(scenario, {}).setdefault(name, []).append(figure)
        print("old: no authorizer; new: 10,000 rules")
        report(figures)


if __name__ == "__main__":
    main()

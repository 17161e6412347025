"""`strandline pipeline run`: runs a spec until it is done, or until somebody stops it."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import ExitStack
from typing import Any

from strandline.cli.arguments import port
from strandline.cli.output.document import add_json
from strandline.cli.pipeline.shapes import EVENT_SHAPE

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def add_parser(actions: Any) -> argparse.ArgumentParser:
    """Adds the parser of this action and returns it."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "run",
        help="run a spec",
        description="Runs a spec until it is done, or until `pipeline stop`, SIGINT or SIGTERM ends it after the "
        "current batch. A second signal ends it at once. The exit code is 1 if it fails.",
    )
    parser.add_argument("spec", metavar="SPEC", help="the pipeline's YAML file")
    add_json(parser, EVENT_SHAPE, lines=True)
    parser.add_argument(
        "--metrics-port",
        type=port,
        metavar="PORT",
        help="serve metrics for Prometheus on this port; 0 takes a free port",
    )
    return parser


def call(options: argparse.Namespace) -> int:
    """Runs the action and returns the exit status."""
    from strandline.node.http.metrics_page import metrics_handler, serving_in_a_thread
    from strandline.pipeline.runtime.metrics import Metrics
    from strandline.pipeline.runtime.reporting import line_of
    from strandline.pipeline.runtime.runner import PipelineFailedError, Runner
    from strandline.pipeline.runtime.state import AlreadyRunningError, NotLocalError
    from strandline.pipeline.spec.reader import load
    from strandline.pipeline.spec.yaml_lines import SpecError

    def publish(event: dict[str, Any]) -> None:
        metrics.update(runner.totals())
        if event["event"] == "started":
            # PySpark has installed its own handler of SIGINT when the session began.
            _stop_at_signals(runner)
        if options.json:
            print(json.dumps(event), flush=True)
        else:
            print(line_of(event), file=sys.stderr, flush=True)

    try:
        spec = load(options.spec)
        runner = Runner(spec, on_event=publish)
        metrics = Metrics(spec.name)
        with ExitStack() as stack:
            if options.metrics_port is not None:
                page = serving_in_a_thread(
                    metrics_handler(metrics.families),
                    "localhost",
                    options.metrics_port,
                    lambda error: print(f"strandline: {error!r}", file=sys.stderr),
                )
                try:
                    metrics_port = stack.enter_context(page)
                except OSError as error:
                    print(
                        f"strandline: --metrics-port {options.metrics_port}: {error.strerror}; choose another, or 0 "
                        "for a free one",
                        file=sys.stderr,
                    )
                    return 1
                print(f"metrics are at http://localhost:{metrics_port}/metrics", file=sys.stderr)
            runner.run()
    except (SpecError, PipelineFailedError, AlreadyRunningError, NotLocalError) as error:
        print(error if isinstance(error, SpecError) else f"strandline: {error}", file=sys.stderr)
        return 1
    return 0


def _stop_at_signals(runner: Any) -> None:
    def stop(number: int, frame: object) -> None:
        runner.request_stop()
        for each in _STOP_SIGNALS:
            signal.signal(each, signal.SIG_DFL)

    for each in _STOP_SIGNALS:
        signal.signal(each, stop)

"""Pipelines on Spark, as files: topics in, decoded, transformed and checked, and topics out, exactly once.

    from strandline import pipeline

    spec = pipeline.load("orders.yaml")
    pipeline.validate(spec)
    pipeline.run(spec, on_event=print)

`strandline pipeline` does the same from a shell. Everything here reaches brokers through `strandline.client`, so it
works with Apache Kafka too.
"""

from __future__ import annotations

from typing import Any, Final

# By name, the module that has it: loaded when asked for, because most of them need Spark or YAML.
_MODULES: Final = {
    "PipelineFailedError": "run.runner",
    "Runner": "run.runner",
    "Spec": "spec.spec",
    "SpecError": "spec.yaml_lines",
    "explain": "run.explain",
    "load": "spec.reader",
    "read_table": "plan.table_sink",
    "run": "run.runner",
    "status": "run.stop_request",
    "stop": "run.stop_request",
    "validate": "run.validation",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"strandline.pipeline.{_MODULES[name]}"), name)

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

# By public name, the module that has it.
_MODULES: Final = {
    "PipelineFailedError": "runtime.runner",
    "Runner": "runtime.runner",
    "Spec": "spec.spec",
    "SpecError": "spec.yaml_lines",
    "explain": "runtime.explain",
    "load": "spec.reader",
    "read_table": "plan.table_sink",
    "run": "runtime.runner",
    "status": "runtime.stop_request",
    "stop": "runtime.stop_request",
    "validate": "runtime.validation",
}


def __getattr__(name: str) -> Any:
    """Loads a public name when it is used: most of the modules need Spark or YAML."""
    if name not in _MODULES:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"strandline.pipeline.{_MODULES[name]}"), name)

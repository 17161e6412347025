"""`strandline pipeline`: pipelines on Spark, as files. Each action is a module of this package and a line of ACTIONS.

Such a module offers `add_parser(actions)` and `call(options)`, which returns the exit status. It imports its
dependencies when it is called, so that the help of one action loads none of another's.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

from strandline.cli.pipeline import audit, explain, run, status, stop, validate

ACTIONS: Final[dict[str, Any]] = {
    "run": run,
    "validate": validate,
    "explain": explain,
    "status": status,
    "stop": stop,
    "audit": audit,
}


def add_arguments(pipeline: argparse.ArgumentParser) -> None:
    actions = pipeline.add_subparsers(dest="action", required=True, metavar="ACTION")
    for module in ACTIONS.values():
        module.add_parser(actions)


def call(options: argparse.Namespace) -> int:
    """Runs an action of `pipeline` and returns the exit status."""
    from strandline.client.errors import KafkaError
    from strandline.spark.runtime.java import NoJavaError

    try:
        status: int = ACTIONS[options.action].call(options)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in (
            "yaml",
            "pyspark",
            "pyarrow",
            "numpy",
            "numba",
            "pandas",
        ):
            raise
        from strandline.cli.failures import fail

        return fail(f"{error.name} is not installed: pip install 'strandline[spark]'")
    except (KafkaError, OSError, NoJavaError) as error:
        # Brokers refuse something, a directory cannot be created, or there is no Java: one sentence says it all.
        print(f"strandline: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        from strandline.pipeline.plan.spark_errors import root_reason_of

        # Such as of a wrong master: Spark's sentence, without the stack of its JVM.
        print(f"strandline: Spark says: {root_reason_of(error)}", file=sys.stderr)
        return 1
    return status

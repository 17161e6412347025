"""`strandline pipeline`: pipelines on Spark, as files. Each action is a module of this package and a line of ACTIONS.

Such a module offers `add_parser(actions, formatter)`, which gives its parser, and `call(options)`, which gives the exit
status. It imports what it needs when it is called: every command of `strandline` loads these modules.
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


def add_commands(
    commands: Any, formatter: type[argparse.HelpFormatter]
) -> dict[str, argparse.ArgumentParser]:
    """Adds `pipeline` to the commands; its parsers by name, for the reference page."""
    group = commands.add_parser("pipeline", help="run pipelines on Spark", formatter_class=formatter)
    actions = group.add_subparsers(dest="action", required=True, metavar="ACTION")
    parsers = {f"pipeline {name}": module.add_parser(actions, formatter) for name, module in ACTIONS.items()}
    return {"pipeline": group, **parsers}


def pipeline(options: argparse.Namespace) -> int:
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
        from strandline.cli.serving import fail

        return fail(f"{error.name} is not installed: pip install 'strandline[spark]'")
    except (KafkaError, OSError, NoJavaError) as error:
        # What brokers refuse, a directory that cannot be made, no Java: a sentence says it, and no action needs more.
        print(f"strandline: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        from strandline.pipeline.plan.spark_errors import root_reason_of

        # As of a master that is none: what Spark says, without the stack of its JVM.
        print(f"strandline: Spark says: {root_reason_of(error)}", file=sys.stderr)
        return 1
    return status

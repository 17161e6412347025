"""`strandline pipeline`: pipelines on Spark, as files. Each action is a module of this package and a line of ACTIONS.

Such a module offers `add_parser(actions, formatter)`, which returns its parser, and `call(options)`, which returns the
exit status. It imports its dependencies when it is called: every command of `strandline` loads these modules.
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
    """Adds `pipeline` to the commands, and returns its parsers by name, for the reference page."""
    group = commands.add_parser("pipeline", help="run pipelines on Spark", formatter_class=formatter)
    actions = group.add_subparsers(dest="action", required=True, metavar="ACTION")
    parsers = {f"pipeline {name}": module.add_parser(actions, formatter) for name, module in ACTIONS.items()}
    return {"pipeline": group, **parsers}


def pipeline(options: argparse.Namespace) -> int:
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
        from strandline.cli.serving import fail

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

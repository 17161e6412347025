"""The entry point of the container.

With arguments it is the `strandline` command. Without any it starts the node that the environment describes, by the
rules of Apache Kafka's image: KAFKA_NODE_ID is `node.id`, two underscores are one, three are a dash. CLUSTER_ID is the
id of the cluster. The log directories are formatted at the first start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir

PREFIX = "KAFKA_"
# Variables of Apache Kafka's image that are for its JVM, or are no settings.
IGNORED = {"KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_VERSION", "KAFKA_HOME"}
CONFIG = "STRANDLINE_SERVER_PROPERTIES"
STRANDLINE = [sys.executable, "-m", "strandline"]


def setting_name(variable: str) -> str:
    """Returns the setting of a variable: KAFKA_NODE_ID is node.id."""
    name = variable.removeprefix(PREFIX).lower()
    # The longest run of underscores first; placeholders keep the shorter ones from matching the results.
    return (
        name.replace("___", "\0").replace("__", "\1").replace("_", ".").replace("\0", "-").replace("\1", "_")
    )


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of the node that the environment describes."""
    found = [name for name in environment if name.startswith(PREFIX) and name not in IGNORED]
    return {setting_name(name): environment[name] for name in sorted(found)}


def write_properties(path: Path, values: Mapping[str, str]) -> None:
    """Writes a server.properties that only this user can read: passwords may be in it."""
    lines = [f"{name}={_escaped(value)}\n" for name, value in values.items()]
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def main(arguments: list[str], environment: Mapping[str, str]) -> None:
    if arguments:
        os.execv(STRANDLINE[0], [*STRANDLINE, *arguments])
    values = settings(environment)
    if "node.id" not in values:
        raise SystemExit("KAFKA_NODE_ID is missing: set the node's settings, or give a command such as `up`")
    config = Path(environment.get(CONFIG) or f"{gettempdir()}/server.properties")
    write_properties(config, values)
    cluster = ["--cluster-id", environment["CLUSTER_ID"]] if environment.get("CLUSTER_ID") else []
    subprocess.run(
        [*STRANDLINE, "format", "--config", str(config), "--ignore-formatted", *cluster], check=True
    )
    # The node takes this process's place, so that it gets the signals of the engine.
    os.execv(STRANDLINE[0], [*STRANDLINE, "server", "--config", str(config)])


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)

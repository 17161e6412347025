"""The Spark session of a pipeline or an audit: embedded by default, on any master by its URL."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strandline.config.addresses import parse_address
from strandline.pipeline.spec.spec import Spec
from strandline.spark.runtime.pyspark_logging import silence_query_errors
from strandline.spark.sessions import LOCAL_SETTINGS, SETTINGS, prepare_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A master on the same network accepts a connection at once; Spark itself would try for a minute and a half.
_MASTER_SECONDS: Final = 5.0


class NoMasterError(ConnectionError):
    """No process listens at the address of the Spark master."""


def session_of(spec: Spec) -> SparkSession:
    """Starts the session of a spec."""
    # Tasks must find the spec's own functions.
    paths = [str(spec.directory), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    return start_session(spec.name, spec.master, spec.spark)


def start_session(name: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    """Starts a session. The settings override Strandline's own. Raises NoMasterError."""
    check_master(master)
    is_local = master.startswith("local")
    prepare_process(is_local=is_local)
    if not {"SPARK_CONF_DIR", "SPARK_HOME"} & os.environ.keys():
        # A user with a Spark installation of their own has configured its log.
        os.environ["SPARK_CONF_DIR"] = str(Path(__file__).parent / "conf")
    from pyspark.sql import SparkSession

    silence_query_errors()
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {
        **SETTINGS,
        **(LOCAL_SETTINGS if is_local else {}),
        **settings,
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def check_master(master: str) -> None:
    """Raises NoMasterError where none of a standalone cluster's masters takes a connection."""
    if not master.startswith("spark://"):
        return
    refused = []
    for text in master.removeprefix("spark://").split(","):
        address = parse_address(text)
        assert address is not None, "the reader of the spec has checked it"
        host, port = address
        try:
            socket.create_connection((host.strip("[]"), port), _MASTER_SECONDS).close()
            return
        except OSError as error:
            refused.append(f"{text}: {error.strerror or error}")
    raise NoMasterError(
        f"the master {master} does not respond ({'; '.join(refused)}): check that it is running and has that address"
    )

"""Starts Spark's Python processes quickly, in sessions that Strandline starts on this machine.

Planning a query takes four or five of them, and tasks as many as run at once. By default each compiles PySpark from a
zip file (0.7 s of CPU where 0.2 s do), and each that runs tasks loads pandas, Arrow and the kernels (a second more).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

PYTHON: Final = Path(__file__).parent / "python.sh"
SETTINGS: Final = {"spark.python.daemon.module": "strandline.spark.runtime.daemon"}


def use_installed_python() -> None:
    """Points PYSPARK_PYTHON at the running Python interpreter, unless the user has chosen one. Call it before a session
    starts whose tasks run on this machine."""
    if os.environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        return
    import pyspark

    home = Path(pyspark.__file__).parent
    # A Spark installation of the user's own brings its own PySpark, perhaps only as a zip file.
    if "SPARK_HOME" in os.environ or not (home / "jars").is_dir() or not os.access(PYTHON, os.X_OK):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        return
    os.environ["STRANDLINE_SPARK_HOME"] = str(home)
    os.environ["STRANDLINE_SPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = str(PYTHON)

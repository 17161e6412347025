"""Reads `spark` of a spec: the master and the settings, whose values are checked as far as that works without Spark.
Spark has more than a thousand settings, and packages bring their own. The checks cover the most common settings whose
bad values have no effect, or end the JVM or the session with an error that names neither file nor line.
"""

from __future__ import annotations

import re
from glob import glob
from pathlib import Path
from typing import Final

from strandline.base.numbers import natural
from strandline.config.addresses import parse_address
from strandline.config.java import INT_MAX
from strandline.pipeline.spec.yaml_lines import Section, nearest

DEFAULT_MASTER: Final = "local[*]"
_MASTERS: Final = "local[*], local[N], spark://HOST:PORT, k8s://URL, or yarn"
_LOCAL: Final = re.compile(r"local(\[\s*([1-9][0-9]*|\*)\s*(,\s*[1-9][0-9]*\s*)?\])?")
_LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[(\s*[1-9][0-9]*\s*,){2}\s*[1-9][0-9]*\s*\]")

_BYTES: Final = re.compile(r"([0-9]+)(b|kb?|mb?|gb?|tb?|pb?)?", re.IGNORECASE)
_UNIT_BYTES: Final = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_DRIVER_MEMORY: Final = "spark.driver.memory"
_EXECUTOR_MEMORY: Final = "spark.executor.memory"
# One and a half times the memory that Spark reserves: Spark's UnifiedMemoryManager does not start with less.
_HEAP_BYTES_MIN: Final = 450 << 20
_SIZES: Final = (
    _EXECUTOR_MEMORY,
    "spark.driver.maxResultSize",
    "spark.driver.memoryOverhead",
    "spark.executor.memoryOverhead",
    "spark.executor.pyspark.memory",
    "spark.memory.offHeap.size",
    "spark.sql.files.maxPartitionBytes",
)
_COUNTS: Final = (
    "spark.cores.max",
    "spark.default.parallelism",
    "spark.driver.cores",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.sql.shuffle.partitions",
    "spark.task.cpus",
    "spark.task.maxFailures",
)
_FLAGS: Final = ("spark.speculation",)
# Lists of files. If a file is missing, Spark only logs that, and the job fails later.
_FILES: Final = ("spark.files", "spark.jars")
_FLAG_SUFFIX: Final = ".enabled"
# Settings that a spec sets in another way.
_SET_ELSEWHERE: Final = {
    "spark.master": "set master: in spark",
    "spark.app.name": "set pipeline: NAME in the spec",
    "spark.submit.deployMode": "the driver is the process that runs the pipeline",
}
_TIME_PARSER: Final = "spark.sql.legacy.timeParserPolicy"
_PARSERS: Final = ("EXCEPTION", "CORRECTED", "LEGACY")


def read_spark(root: Section) -> tuple[str, dict[str, str]]:
    """Returns the master and the settings."""
    section = root.section("spark")
    if section is None:
        return DEFAULT_MASTER, {}
    master = section.text("master")
    why = None if master is None else why_no_master(master)
    if why is not None:
        section.wrong("master", why)
    settings = section.pairs("settings")
    for name, value in settings.items():
        why = why_no_setting(name, value)
        if why is not None:
            section.mistakes.add(value.line, f"{section.named('settings')}.{name} {why}")
    section.done()
    return str(master or DEFAULT_MASTER), {name: str(value) for name, value in settings.items()}


def why_no_master(text: str) -> str | None:
    """Returns the reason why a text cannot be the URL of a master; None if it can."""
    is_one = bool(_LOCAL.fullmatch(text) or _LOCAL_CLUSTER.fullmatch(text)) or text == "yarn"
    if text.startswith("k8s://"):
        is_one = text != "k8s://" and " " not in text
    elif text.startswith("spark://"):
        addresses = [parse_address(each) for each in text.removeprefix("spark://").split(",")]
        is_one = all(each is not None and each[0] and 0 < each[1] < 65_536 for each in addresses)
    return None if is_one else f"cannot be {text!r}: use {_MASTERS}"


def why_no_setting(name: str, text: str) -> str | None:
    """Returns the reason why a setting of Spark is wrong; None if no mistake can be seen here."""
    if not name.startswith("spark.") or name == "spark.":
        return "is not a setting of Spark: their names begin with spark., and Hadoop's with spark.hadoop."
    if name in _SET_ELSEWHERE:
        return f"cannot be set here: {_SET_ELSEWHERE[name]}"
    value = text.strip()
    if name == _DRIVER_MEMORY:
        return _why_no_heap_of_java(value)
    if name in _SIZES:
        return _why_no_size(name, value)
    if name in _COUNTS and not 0 < (natural(value) or 0) <= INT_MAX:
        return f"must be a positive number, not {text!r}"
    if (name in _FLAGS or name.endswith(_FLAG_SUFFIX)) and value.lower() not in ("true", "false"):
        return f"must be true or false, not {text!r}"
    if name in _FILES:
        return _why_no_files(value)
    if name == _TIME_PARSER and value.upper() not in _PARSERS:
        return f"cannot be {text!r}{nearest(value, _PARSERS)}"
    return None


def _why_no_files(value: str) -> str | None:
    """Returns the reason why files of a setting are missing; None if all exist. Paths are relative to the working
    directory, as in Spark, and patterns are allowed."""
    for each in filter(None, map(str.strip, value.split(","))):
        scheme, colon, rest = each.partition(":")
        if colon and scheme != "file":
            continue
        path = (re.sub("^/+", "/", rest) if colon else each).partition("#")[0]
        if not Path(path).exists() and not glob(path):
            return f"names {each}, which does not exist"
    return None


def _why_no_heap_of_java(value: str) -> str | None:
    """Returns the reason why Java cannot use the driver's memory setting; None if it can. Spark passes it to Java
    unchanged: Java knows fewer units, and reads a plain number as bytes."""
    if not re.fullmatch(r"[0-9]+[kmgt]", value, re.IGNORECASE):
        return f"must be a size such as 2g or 800m, not {value!r}"
    return _why_too_small(value)


def _why_no_size(name: str, value: str) -> str | None:
    if not _BYTES.fullmatch(value):
        return f"must be a size such as 2g or 800m, not {value!r}"
    return _why_too_small(value) if name == _EXECUTOR_MEMORY else None


def _why_too_small(value: str) -> str | None:
    match = _BYTES.fullmatch(value)
    assert match is not None, "checked before"
    unit = (match[2] or "m")[0].lower()  # without a unit Spark assumes megabytes
    if int(match[1]) * _UNIT_BYTES[unit] >= _HEAP_BYTES_MIN:
        return None
    return f"must be at least {_HEAP_BYTES_MIN >> 20}m, not {value!r}: Spark does not start with less"

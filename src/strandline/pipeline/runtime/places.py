"""Checks, before a pipeline runs, that its directories can be created and written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from strandline.pipeline.spec.spec import TOPIC_SINK, Spec, local_path
from strandline.pipeline.spec.yaml_lines import Mistake, SpecError


def check_places(spec: Spec) -> None:
    """Raises SpecError if the checkpoint or the directory of a sink cannot be written. No file remains from the check.
    Directories that are not on this machine are left to Spark.
    """
    places = [(spec.checkpoint_line, "checkpoint", spec.checkpoint)]
    places += [
        (sink.line, f"sink {sink.kind}", sink.target)
        for sink in spec.sinks
        if sink.kind not in (TOPIC_SINK, "console", "iceberg")
    ]
    mistakes = []
    for line, name, target in places:
        path = local_path(spec.located(target))
        why = None if path is None else _why_unwritable(path)
        if why is not None:
            text = f"{name}: {target} cannot be written: {why}; choose a directory that you may write"
            mistakes.append(Mistake(file=spec.file, line=line, text=text))
    if mistakes:
        raise SpecError(mistakes)


def _why_unwritable(path: Path) -> str | None:
    """Returns the reason why a directory cannot be written, or None. It tries to write in the directory, or in the
    nearest existing one above it."""
    there = path.absolute()
    while not os.path.lexists(there):
        there = there.parent
    if not there.is_dir():
        return f"{there} is not a directory"
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".strandline-", dir=there))
    except OSError as error:
        return f"{there}: {error.strerror}"
    return None

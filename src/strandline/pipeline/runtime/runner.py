"""Runs a pipeline until it ends, fails or is asked to stop, and reports its progress.

The caller gets events, one dict each: `starting`, `topic created`, `started`, `batch`, `restarted`, `stopping`, and
`finished`, `stopped` or `failed` with the totals. The same totals are in the state directory of the checkpoint.
`status` reads them there, and `stop` puts its request there.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from strandline.pipeline.plan.spark_errors import reason_of
from strandline.pipeline.runtime.places import check_places
from strandline.pipeline.runtime.queries import RunningQuery, start_queries
from strandline.pipeline.runtime.session import session_of
from strandline.pipeline.runtime.state import StateDirectory
from strandline.pipeline.runtime.topics import check_topics, create_topics
from strandline.pipeline.spec.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = dict[str, Any]
_POLL_SECONDS: Final = 0.2


class PipelineFailedError(RuntimeError):
    """A query of the pipeline has ended with an error."""


class Runner:
    """One run of a pipeline. `spark` is a session to use; without one a session is started, and stopped at the end."""

    def __init__(
        self,
        spec: Spec,
        *,
        spark: SparkSession | None = None,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._spec = spec
        self._shared_spark = spark
        self._on_event = on_event
        self._state = StateDirectory(spec)
        self._stopping = threading.Event()
        self._queries: list[RunningQuery] = []
        self._began_at = _now()

    def request_stop(self) -> None:
        """Asks the run to stop, from any thread or a signal handler. No further batch begins, and `run` returns after
        the batches in progress."""
        self._stopping.set()

    def run(self) -> Event:
        """Runs the pipeline and returns the last event. Raises PipelineFailedError if a query failed, SpecError if the
        spec cannot run."""
        check_places(self._spec)
        with self._state.locked():
            self._publish({"event": "starting"})
            try:
                return self._run()
            except PipelineFailedError:
                raise  # published before, with its query
            except BaseException as error:
                self._publish({"event": "failed", "error": reason_of(error), **self._totals()})
                raise

    def _run(self) -> Event:
        spec = self._spec
        check_topics(spec)
        for topic in create_topics(spec):
            self._publish({"event": "topic created", "topic": topic})
        with ExitStack() as ends:  # each query is closed, whatever another one raises
            spark = self._shared_spark or session_of(spec)
            if self._shared_spark is None:
                ends.callback(spark.stop)
            self._queries = start_queries(spark, spec, self._stopping)
            for each in self._queries:
                ends.callback(each.stop)
            self._publish({"event": "started", "queries": [each.name for each in self._queries]})
            return self._watch(spark)

    def _watch(self, spark: SparkSession) -> Event:
        is_stopping = False
        while True:
            self._restart_failed()
            active = [each for each in self._queries if each.query.isActive]
            for each in self._queries:
                for event in each.events():
                    self._publish(event)
            failed = [each for each in self._queries if each.failure is not None]
            if failed and not self._stopping.is_set():
                self._stopping.set()
            if not active:
                break
            if self._stopping.is_set() or self._state.is_stop_requested():
                if not is_stopping:
                    is_stopping = True
                    self._stopping.set()
                    self._publish({"event": "stopping"})
                    # A query that may not begin a batch ends with an error, which Spark would print.
                    spark.sparkContext.setLogLevel("OFF")
                for each in active:
                    each.stop_between_batches()
            time.sleep(_POLL_SECONDS)
        if self._shared_spark is not None and is_stopping:
            spark.sparkContext.setLogLevel("ERROR")
        if failed:
            error = failed[0].failure
            assert error is not None
            reason = reason_of(error)
            self._publish({"event": "failed", "query": failed[0].name, "error": reason, **self._totals()})
            raise PipelineFailedError(
                f"query {failed[0].name} of pipeline {self._spec.name} failed: {reason}"
            ) from error
        return self._publish({"event": "stopped" if is_stopping else "finished", **self._totals()})

    def _restart_failed(self) -> None:
        for each in self._queries:
            error = each.failure
            if error is None or self._stopping.is_set():
                continue
            for event in each.events():  # a restart forgets the batches before it
                self._publish(event)
            if each.restart():
                self._publish({"event": "restarted", "query": each.name, "error": reason_of(error)})

    def _publish(self, event: Event) -> Event:
        event = {"at": _now(), "pipeline": self._spec.name, **event}
        kind = event["event"]
        self._state.write(
            {
                "pipeline": self._spec.name,
                "state": kind if kind in ("stopping", "stopped", "finished", "failed") else "running",
                "pid": os.getpid(),
                "began_at": self._began_at,
                "updated_at": event["at"],
                **({"error": event["error"]} if kind == "failed" else {}),
                **self._totals(),
            }
        )
        self._on_event(event)
        return event

    def totals(self) -> dict[str, dict[str, Any]]:
        """Returns the totals of every query, as they are now."""
        return {each.name: each.progress.totals.as_json() for each in self._queries}

    def _totals(self) -> dict[str, Any]:
        return {"queries": self.totals()}


def run(spec: Spec, **arguments: Any) -> Event:
    """Runs a spec to its end and returns the last event. The arguments are those of `Runner`."""
    return Runner(spec, **arguments).run()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

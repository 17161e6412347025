"""Restarts queries after an error that another attempt does not meet.

Spark gives a new Python process of a source ten seconds, whatever its settings say, and ends the query of one that is
late. Its checkpoint is whole: a query that is started again goes on where it was.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_log = logging.getLogger(__name__)

_TRANSIENT: Final = "Python worker failed to connect back"
RESTARTS_MAX: Final = 5
_LOOK_SECONDS: Final = 0.2


def is_transient(error: BaseException | None) -> bool:
    """True for an error that is not the query's fault: the machine was too busy to start a Python process."""
    return error is not None and _TRANSIENT in str(error)


class RestartingWriter:
    """A writer of a stream whose query is started again. It takes every call of Spark's writer."""

    def __init__(self, writer: DataStreamWriter, restarts_max: int) -> None:
        if restarts_max < 1:
            raise ValueError(f"restart={restarts_max}: give how often the query may begin again, at least 1")
        self._writer = writer
        self._restarts_max = restarts_max

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._writer, name)

        def passed_on(*arguments: Any, **keywords: Any) -> RestartingWriter:
            self._writer = call(*arguments, **keywords)
            return self

        return passed_on

    def start(self, *arguments: Any, **keywords: Any) -> RestartingQuery:
        """Starts the query. The arguments are those of `DataStreamWriter.start`."""
        return RestartingQuery(lambda: self._writer.start(*arguments, **keywords), self._restarts_max)


class RestartingQuery:
    """A streaming query that is restarted; it has the attributes and methods of Spark's. `restarts` counts the
    restarts. A thread watches it until it ends for good.
    """

    def __init__(self, start: Any, restarts_max: int) -> None:
        self._start = start
        self._restarts_max = restarts_max
        self._lock = threading.Lock()
        self._is_stopped = False
        self._ended = threading.Event()
        self.restarts = 0
        self._query: StreamingQuery = start()
        threading.Thread(target=self._look_after, name="strandline-restarts", daemon=True).start()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    @property
    def isActive(self) -> bool:
        """True until the query has ended for good."""
        return not self._ended.is_set()

    def stop(self) -> None:
        """Stops the query; it does not begin again."""
        with self._lock:
            self._is_stopped = True
            self._query.stop()
        self._ended.wait()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        """Waits for the end, and raises the error that ended the query for good, as Spark's does."""
        has_ended = self._ended.wait(timeout)
        if not has_ended:
            return False
        self._query.awaitTermination()
        return None if timeout is None else True

    def _look_after(self) -> None:
        try:
            while True:
                query = self._query
                while query.isActive:
                    time.sleep(_LOOK_SECONDS)
                with self._lock:
                    error = query.exception()
                    if self._is_stopped or not is_transient(error) or self.restarts >= self._restarts_max:
                        return
                    self.restarts += 1
                    _log.warning(
                        "a Python process of Spark was late; query %s begins again at its checkpoint (%d of %d)",
                        query.name or query.id,
                        self.restarts,
                        self._restarts_max,
                    )
                    self._query = self._start()
        except Exception as error:
            # The query cannot be started, or Spark itself has ended: the query's own error is still the one that is
            # raised.
            _log.warning("the query is not started again: %s", error)
        finally:
            self._ended.set()

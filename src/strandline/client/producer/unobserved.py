"""The errors of records whose results nobody has looked at: `flush` and `close` raise them, or `on_error` takes them.

A record counts as observed when somebody awaits its promise, asks for its result or error, or gives it a callback. Only
failed records are kept here, so the usual record costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from strandline.base.callbacks import call_back
from strandline.client.errors import KafkaError
from strandline.telemetry.counters import Counters

# Called on the loop with an error, and with how many records have it that nobody waits for.
OnError = Callable[[KafkaError, int], object]

# So many failures are kept to see whether somebody looks at them later; earlier ones are only counted.
_KEPT_MAX: Final = 1000


class Failed(Protocol):
    """A batch, a table or a single record that failed."""

    def unobserved_count(self) -> int: ...


class UnobservedErrors:
    """The failures of one producer that nobody has looked at."""

    def __init__(self, on_error: OnError | None, counters: Counters) -> None:
        self._on_error = on_error
        self._counters = counters
        self._failed: deque[tuple[Failed, KafkaError]] = deque()
        self._earlier: tuple[int, KafkaError] | None = (
            None  # the count of those not kept, and the first error
        )

    def failed(self, what: Failed, error: KafkaError) -> None:
        """Notes a failure; `on_error`, if there is one, takes it at once."""
        count = what.unobserved_count()
        if not count:
            return
        if self._on_error is not None:
            self._counters.add("record-unobserved-error-total", count)
            call_back(self._on_error, error, count)
            return
        self._failed.append((what, error))
        if len(self._failed) > _KEPT_MAX:
            oldest, first = self._failed.popleft()
            if oldest.unobserved_count():
                known = self._earlier
                total = oldest.unobserved_count() + (known[0] if known else 0)
                self._earlier = (total, known[1] if known else first)

    def clear(self) -> None:
        """Forgets all: the application was told by another error, or has aborted their transaction."""
        self._failed.clear()
        self._earlier = None

    def take(self) -> KafkaError | None:
        """Returns the first error once, as a new error whose text has the count; None if there is none."""
        count, first = self._earlier or (0, None)
        for what, error in self._failed:
            unobserved = what.unobserved_count()
            count += unobserved
            first = first or (error if unobserved else None)
        self.clear()
        if first is None:
            return None
        self._counters.add("record-unobserved-error-total", count)
        return _told(first, count)


def _told(first: KafkaError, count: int) -> KafkaError:
    records = "1 record was" if count == 1 else f"{count} records were"
    told = first.__class__.__new__(first.__class__, *first.args)
    told.__dict__.update(first.__dict__)
    told.message = f"{records} not written, and nobody looked at the result; the first error: {first.message}"
    told.__cause__ = first
    return told

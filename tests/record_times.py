"""Record timestamps for tests against real brokers, which delete records that are older than `retention.ms`.

Both Strandline and Apache Kafka run their first retention pass 30 seconds after they start, and judge a segment by its
largest record timestamp. A record that is stamped with a date of the past is therefore gone in the middle of a test,
and a test that compares two results may compare empty with empty.
"""

from __future__ import annotations

import time

HOUR_MS = 3_600_000


def recent_ms() -> int:
    """Returns the time an hour ago, in whole seconds, which is within every default retention.

    A test calls this once and derives all of its times from the result, because two calls may differ.
    """
    return int(time.time()) * 1000 - HOUR_MS

"""A process that stood still, as on a machine that slept, goes on as if nothing had happened."""

from __future__ import annotations

import os
import signal
import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from strandline.testing import running_broker


def test_a_node_that_is_alone_does_not_fence_itself_for_having_slept() -> None:
    with running_broker(broker_session_timeout_ms="1000") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        errors: list[object] = []
        producer.produce("t", b"before", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(60) == 0
        os.kill(broker.pid, signal.SIGSTOP)
        time.sleep(2.5)
        os.kill(broker.pid, signal.SIGCONT)
        producer.produce("t", b"after", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(60) == 0
        assert errors == [None, None]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        assert admin.list_topics("t", timeout=60).topics["t"].partitions[0].leader == 1
        assert "session expired" not in broker.log_text

"""Tests in which something goes wrong."""

from __future__ import annotations

import pytest
from shop import bill, order_producer, place_order


def test_an_order_is_written_once_though_its_response_is_lost(strandline_broker, strandline_faults, orders):
    with (
        order_producer(strandline_broker.bootstrap, request_timeout_ms=1000) as producer,
        strandline_faults.drop_response("Produce", topic=orders) as fault,
    ):
        place_order(producer, orders, 7, 120)
    fault.assert_fired()
    strandline_broker.expect(orders, [{"order": 7, "amount": 120}], within=5)


@pytest.mark.strandline_settings(message_max_bytes=100)
def test_an_order_that_is_too_large_is_an_error(strandline_own_broker):
    topic = strandline_own_broker.create_topic("orders")
    with (
        order_producer(strandline_own_broker.bootstrap) as producer,
        pytest.raises(ValueError, match="MESSAGE_TOO_LARGE"),
    ):
        place_order(producer, topic, 7, 10**100)


def test_billing_goes_on_when_the_leader_is_killed(strandline_cluster):
    for topic in ("orders", "invoices"):
        strandline_cluster.create_topic(topic, replication_factor=3)
    strandline_cluster.produce("orders", [{"order": 1, "amount": 10}, {"order": 2, "amount": 20}])
    leader = strandline_cluster.leader_of("orders", 0)
    leader.kill()
    bill(strandline_cluster.bootstrap, "orders", "invoices", count=2)
    leader.start()
    strandline_cluster.wait_until_in_sync(within=60)
    strandline_cluster.expect("invoices", [{"invoice": 1}, {"invoice": 2}], within=10)

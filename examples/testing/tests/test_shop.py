"""Tests with the broker of the session."""

from __future__ import annotations

from shop import bill, order_producer, place_order


def test_an_order_is_written(strandline_broker, orders):
    with order_producer(strandline_broker.bootstrap) as producer:
        place_order(producer, orders, 7, 120)
    strandline_broker.expect(orders, [{"order": 7, "amount": 120}], within=5)


def test_each_order_gets_an_invoice(strandline_broker, orders, invoices):
    strandline_broker.produce(orders, [{"order": number, "amount": 10} for number in range(3)])
    bill(strandline_broker.bootstrap, orders, invoices, count=3)
    strandline_broker.expect(invoices, [{"invoice": number} for number in range(3)], within=5, in_order=False)

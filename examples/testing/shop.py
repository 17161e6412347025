"""A shop: orders are written to a topic, and a biller writes an invoice for each of them."""

from __future__ import annotations

from strandline.client.sync import Consumer, Producer


def order_producer(bootstrap: str, **settings) -> Producer:
    return Producer(bootstrap_servers=bootstrap, key_serializer="str", value_serializer="json", **settings)


def place_order(producer: Producer, topic: str, number: int, amount: int) -> None:
    """Returns when the order is written."""
    producer.send(topic, {"order": number, "amount": amount}, key=str(number)).result(30)


def bill(bootstrap: str, orders: str, invoices: str, count: int) -> None:
    """Writes an invoice for each of the next `count` orders, and commits an order when its invoice is written."""
    with (
        Producer(bootstrap_servers=bootstrap, value_serializer="json") as producer,
        Consumer(
            orders,
            bootstrap_servers=bootstrap,
            group_id="billing",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            value_deserializer="json",
        ) as consumer,
    ):
        billed = 0
        while billed < count:
            for record in consumer.poll():
                invoice = {"invoice": record.value["order"]}
                producer.send(invoices, invoice, key=record.key).result(30)
                billed += 1
            consumer.commit()

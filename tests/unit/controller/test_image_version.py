"""The version by which caches of responses go: it changes with the metadata that clients are shown, and with nothing
else."""

from __future__ import annotations

from strandline.controller.image import ClusterImage
from strandline.wire.records import metadata as records


def test_a_new_topic_is_another_version() -> None:
    image = ClusterImage()
    before = image.version
    image.apply(records.TopicRecord(name="orders", topic_id=b"t" * 16))
    assert image.version > before


def test_a_sign_of_life_and_a_block_of_producer_ids_are_none() -> None:
    """The controller writes one every half a second: large responses would be made again as often."""
    image = ClusterImage()
    before = image.version
    image.apply(records.NoOpRecord())
    image.apply(records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=2000))
    assert (image.version, image.next_producer_id) == (before, 2000)

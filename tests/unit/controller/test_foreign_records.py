"""Records of the metadata log that Strandline does not write: understood, or kept as they are."""

from __future__ import annotations

from strandline.controller.image import ClusterImage
from strandline.controller.image_records import records_of
from strandline.wire.records.framing import decode_metadata_record, encode_metadata_record
from strandline.wire.records.metadata import ClearElrRecord
from tests.unit.controller.plans import Cluster, topic

# Frame version, a key that no record has, version, and something.
SET, REMOVED = b"\x01\x7d\x00something", b"\x01\x7e\x00something"


def test_records_of_unknown_kinds_go_into_the_next_snapshot_in_their_order() -> None:
    image = ClusterImage()
    for value in (SET, REMOVED, SET):
        image.apply(decode_metadata_record(value))
    written = [encode_metadata_record(record) for record in records_of(image)]
    assert written == [REMOVED, SET]


def test_eligible_leaders_are_cleared_of_one_topic_or_of_all() -> None:
    cluster = Cluster(None, None)
    cluster.create(topic("a", assignments={0: (1, 2)}), topic("b", assignments={0: (1, 2)}))
    image = cluster.image
    partitions = [image.topics[name].partitions[0] for name in ("a", "b")]
    for partition in partitions:
        partition.eligible_leaders = partition.last_known_leaders = (2,)
    image.apply(ClearElrRecord(topic_name="a"))
    assert [p.eligible_leaders for p in partitions] == [(), (2,)]
    image.apply(ClearElrRecord(topic_name=""))
    assert [p.last_known_leaders for p in partitions] == [(), ()]

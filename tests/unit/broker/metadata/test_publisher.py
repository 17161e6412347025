"""The state that a node makes of committed metadata."""

from __future__ import annotations

import pytest

from strandline.broker.metadata.publisher import MetadataDelta, MetadataPublisher
from strandline.config import DynamicConfigs
from strandline.controller.image import TOPIC_RESOURCE, ClusterImage
from strandline.wire.records.metadata import ConfigRecord
from strandline.wire.schema import Message
from tests.unit.broker.metadata_records import topic
from tests.unit.config.settings import started


def setting(name: str, key: str, value: str) -> Message:
    return ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=name, name=key, value=value)


def test_a_snapshot_removes_what_it_does_not_have() -> None:
    """A topic of the same name and another id is another topic: it must not get the old one's log."""
    seen: list[MetadataDelta] = []
    configs = DynamicConfigs(started())
    view = MetadataPublisher(ClusterImage(), configs, None, seen.append, lambda: None)
    first = [*topic("kept", 1), *topic("made again", 2), *topic("deleted", 3)]
    first += [setting("kept", "retention.ms", "5"), setting("kept", "segment.bytes", "2097152")]
    first += [setting("made again", "retention.ms", "5")]
    for offset, record in enumerate(first):
        view.committed(record, offset + 1)
    view.published(len(first))
    view.snapshot_loaded(
        [*topic("kept", 1), *topic("made again", 4), setting("kept", "segment.bytes", "2097152")], 50
    )
    assert seen[-1].removed_topics == ["made again", "deleted"]
    assert list(seen[-1].partitions) == [("kept", 0), ("made again", 0)]
    default_ms = configs.topic("any").retention_ms
    assert [configs.topic(name).retention_ms for name in ("kept", "made again")] == [default_ms] * 2
    assert configs.topic("kept").segment_bytes == 2_097_152


def test_an_image_never_goes_back() -> None:
    """To a view that goes back, what is newer has been deleted."""
    view = MetadataPublisher(ClusterImage(), DynamicConfigs(started()), None, lambda _: None, lambda: None)
    view.snapshot_loaded(topic("kept", 1), 10)
    view.published(12)
    with pytest.raises(AssertionError, match="never goes back"):
        view.snapshot_loaded(topic("kept", 1), 10)

"""Controllers register with the active one (KIP-919)."""

from __future__ import annotations

from strandline.controller import brokers
from strandline.controller.image import ClusterImage
from strandline.controller.image_records import records_of
from strandline.wire.api.k70_controller_registration import ControllerRegistrationRequest, Feature, Listener
from tests.unit.controller.plans import Cluster


def registered(cluster: Cluster, incarnation: bytes, port: int = 9093) -> None:
    request = ControllerRegistrationRequest(
        controller_id=7,
        incarnation_id=incarnation,
        zk_migration_ready=False,
        listeners=(Listener(name="CONTROLLER", host="here", port=port, security_protocol=0),),
        features=(Feature(name="kraft.version", min_supported_version=0, max_supported_version=1),),
    )
    cluster.commit(brokers.plan_register_controller(cluster.image, request))


def test_controller_is_known_by_its_latest_incarnation() -> None:
    cluster = Cluster()
    registered(cluster, b"a" * 16)
    registered(cluster, b"b" * 16, port=9094)
    assert cluster.image.controllers[7].end_points[0].port == 9094
    count = len(cluster.log)
    registered(cluster, b"b" * 16)
    assert len(cluster.log) == count, "a repetition whose response was lost"


def test_snapshot_has_the_controllers() -> None:
    cluster = Cluster()
    registered(cluster, b"a" * 16)
    again = ClusterImage()
    for record in records_of(cluster.image):
        again.apply(record)
    assert again.controllers == cluster.image.controllers

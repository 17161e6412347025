"""Controllers are added to a running quorum and taken from it (KIP-853), on real processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from strandline.base.ids import uuid_text
from strandline.testing.clusters import free_ports
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.system.cluster import story
from tests.system.cluster.controllers import WAIT_SECONDS_MAX, Controllers, running_controllers
from tests.system.cluster.story import NONE
from tests.waiting import eventually

INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, REQUEST_TIMED_OUT = 104, 42, 7
DUPLICATE_VOTER, VOTER_NOT_FOUND = 126, 127


@pytest.fixture(scope="module")
def controllers() -> Iterator[Controllers]:
    with running_controllers() as running:
        yield running


def create_and_write(controllers: Controllers, topic: str) -> None:
    """The metadata and the data of the cluster work."""
    created = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, assignments=(), configs=())
    request = CreateTopicsRequest(topics=(created,), timeout_ms=60_000)
    eventually(lambda: controllers.ask(request, 7).topics[0].error_code in (0, 36), WAIT_SECONDS_MAX)
    eventually(lambda: story.write(controllers.broker, topic, ["x"])[0] == NONE, WAIT_SECONDS_MAX)


def test_standalone_controller_gets_two_more_dies_and_is_removed(controllers: Controllers) -> None:
    assert controllers.voters() == [1]
    observers = {replica.replica_id for replica in controllers.quorum().observers}
    assert observers <= {2, 3, 4}
    for node_id in (2, 3):
        controllers.until_added(node_id)
    assert controllers.voters() == [1, 2, 3]
    create_and_write(controllers, "before")
    gone = controllers.directory_id(1)
    controllers.nodes[1].kill()
    eventually(lambda: controllers.leader() in (2, 3), WAIT_SECONDS_MAX)
    create_and_write(controllers, "without-the-first")
    controllers.until_removed(1, gone)
    assert controllers.voters() == [2, 3]
    controllers.nodes[1].start()
    create_and_write(controllers, "after")
    assert controllers.voters() == [2, 3], "it is back as an observer"


def test_controller_comes_back_with_a_new_disk_as_another_voter(controllers: Controllers) -> None:
    for node_id in (1, 2, 3):
        controllers.until_added(node_id)
    old = controllers.directory_id(1)
    controllers.nodes[1].kill()
    shutil.rmtree(controllers.nodes[1].data_dir)
    controllers.format(1, "--no-initial-controllers")
    controllers.nodes[1].start()
    assert controllers.directory_id(1) != old
    eventually(lambda: controllers.add(1).error_code == DUPLICATE_VOTER, WAIT_SECONDS_MAX)
    controllers.until_removed(1, old)
    controllers.until_added(1)
    found = {voter.replica_id: voter.replica_directory_id for voter in controllers.quorum().current_voters}
    assert found[1] == controllers.directory_id(1)


def test_controller_that_moves_announces_its_new_address(controllers: Controllers) -> None:
    for node_id in (1, 2, 3):
        controllers.until_added(node_id)
    moving = next(n for n in (1, 2, 3) if n != controllers.leader())
    node, old, new = controllers.nodes[moving], controllers.ports[moving], free_ports(1)[0]
    node.stop()
    for key in ("listeners", "advertised.listeners"):
        if key in node.settings:
            node.settings[key] = node.settings[key].replace(str(old), str(new))
    controllers.ports[moving] = new
    node.start()
    eventually(lambda: controllers.recorded_ports()[moving] == new, WAIT_SECONDS_MAX)
    leader = controllers.leader()
    controllers.nodes[leader].kill()
    eventually(lambda: controllers.leader() not in (-1, leader), WAIT_SECONDS_MAX)
    create_and_write(controllers, "moved")
    controllers.nodes[leader].start()


def test_changes_that_cannot_be_are_refused_and_nothing_changes(controllers: Controllers) -> None:
    for node_id in (1, 2, 3):
        controllers.until_added(node_id)
    before = controllers.voters()
    other_cluster = uuid_text(b"x" * 16)
    refused = controllers.add(1, cluster_id=other_cluster)
    assert refused.error_code == INCONSISTENT_CLUSTER_ID
    assert other_cluster in refused.error_message
    refused = controllers.add(1)
    assert (refused.error_code, "already" in refused.error_message) == (DUPLICATE_VOTER, True)
    refused = controllers.remove(1, b"y" * 16)
    assert (refused.error_code, "not a voter" in refused.error_message) == (VOTER_NOT_FOUND, True)
    assert controllers.remove(9, b"y" * 16).error_code == VOTER_NOT_FOUND
    assert controllers.remove(1, bytes(16)).error_code == INVALID_REQUEST
    refused = controllers.remove(1, controllers.directory_id(1), cluster_id=other_cluster)
    assert refused.error_code == INCONSISTENT_CLUSTER_ID
    assert controllers.voters() == before


def test_controller_of_another_quorum_is_not_added(controllers: Controllers) -> None:
    """One that was formatted to begin a quorum of its own votes there, and fetches nothing here."""
    controllers.until_added(2)
    eventually(lambda: controllers.leader() > 0, WAIT_SECONDS_MAX)
    victim = next(n for n in (1, 2, 3) if n != controllers.leader())
    controllers.until_added(victim)
    old = controllers.directory_id(victim)
    controllers.nodes[victim].kill()
    controllers.until_removed(victim, old)
    shutil.rmtree(controllers.nodes[victim].data_dir)
    controllers.format(victim, "--standalone")
    controllers.nodes[victim].start()
    eventually(lambda: "active controller" in controllers.nodes[victim].log_text, WAIT_SECONDS_MAX)
    refused = controllers.add(victim)
    assert (refused.error_code, "caught up" in refused.error_message) == (REQUEST_TIMED_OUT, True)
    assert victim not in controllers.voters()

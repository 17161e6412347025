"""`strandline quorum reset-epoch`: a node whose epochs are used up says how to come back, and comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.cli.exit_codes import DONE, FAILED, USAGE
from strandline.cli.main import main
from strandline.quorum.epochs import EPOCH_MAX
from strandline.testing import BrokerProcess

STATE = "__cluster_metadata-0/quorum-state"


def use_up(data: Path) -> None:
    """Leaves the epoch as a forged Vote left it in 0.1.0."""
    state = json.loads((data / STATE).read_text())
    (data / STATE).write_text(json.dumps({**state, "leaderEpoch": EPOCH_MAX}))


def test_a_node_whose_epochs_are_used_up_comes_back_by_a_reset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    broker = BrokerProcess(data, {})
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(30)
        assert main(["quorum", "reset-epoch", str(data), "--yes"]) == USAGE
        assert "in use" in capsys.readouterr().err
        broker.stop()
        use_up(data)
        assert main(["quorum", "reset-epoch", str(data)]) == FAILED  # nobody can be asked here
        assert json.loads((data / STATE).read_text())["leaderEpoch"] == EPOCH_MAX
        assert main(["quorum", "reset-epoch", str(data), "--yes", "--json"]) == DONE
        said = json.loads(capsys.readouterr().out)
        assert (said["old_epoch"], said["new_epoch"]) == (EPOCH_MAX, (1 << 21) - 1)
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        assert "kept" in admin.list_topics(timeout=30).topics
    finally:
        broker.stop()


def test_a_directory_without_a_metadata_log_is_refused_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quorum", "reset-epoch", str(tmp_path), "--yes"]) == USAGE
    assert "quorum-state" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

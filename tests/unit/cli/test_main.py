"""The command line's own decisions; what its commands do is in tests/system."""

from __future__ import annotations

import pytest

from strandline import __version__
from strandline.cli.main import main
from strandline.cli.parser import build_parser


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"strandline {__version__}\n"


def test_without_a_command_there_is_nothing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


def test_up_runs_on_kafka_s_port_and_keeps_data_beside_it() -> None:
    options = build_parser()[0].parse_args(["up"])
    assert (options.port, options.data, options.ephemeral) == (9092, "./strandline-data", False)
    assert (options.log_format, options.log_level) == ("text", "info")


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_is_none_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--port", port])
    assert f"--port: {port} is not a port: a number from 0 to 65535 is" in capsys.readouterr().err


@pytest.mark.parametrize("nodes", ["0", "16", "many"])
def test_a_number_of_nodes_that_cannot_be_is_refused(nodes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--nodes", nodes])
    assert f"--nodes: {nodes} nodes: 1 to 15" in capsys.readouterr().err


def test_docs_prints_every_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    printed = capsys.readouterr().out
    for title in ("# API support", "# Command line", "## strandline up"):
        assert title in printed


def test_docs_writes_every_page(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "--write", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("wrote ") == 4

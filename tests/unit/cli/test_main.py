"""The command line's own decisions; what its commands do is in tests/system."""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import time
from importlib import import_module

import pytest

from strandline import __version__
from strandline.cli.main import main
from strandline.cli.output.progress import Progress
from strandline.cli.parser import build_parser
from strandline.cli.table import COMMANDS, Command, Group


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


@pytest.mark.parametrize(
    "typed", ["t f g --whole", "t --whole f g", "--whole t f g", "t f --whole g", "t --whole f -k x g"]
)
def test_options_may_be_anywhere_between_a_topic_and_files(typed: str) -> None:
    arguments = ["produce", *typed.split()]
    options = build_parser(arguments).parse_args(arguments)
    assert (options.topic, options.file, options.whole) == ("t", ["f", "g"], True)


def test_files_of_produce_may_be_missing_and_a_topic_may_not(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["produce", "t", "--whole"]
    assert build_parser(arguments).parse_args(arguments).file == []
    with pytest.raises(SystemExit):
        build_parser(["produce"]).parse_args(["produce", "--whole"])
    assert "the following arguments are required: TOPIC" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("topic list", "did you mean topics"), ("topics lst", "did you mean list?"), ("xyzzy", "there is up, ")],
)
def test_a_mistyped_command_is_met_with_those_near_it(
    typed: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed.split())
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


def test_faults_of_torture_are_listed_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["torture", "--list", "--json"]) == 0
    faults = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(faults) == 10
    assert all(each["fault"] and each["text"] and each["roles"] for each in faults)


def test_up_runs_on_kafka_s_port_and_keeps_data_beside_it() -> None:
    options = build_parser(["up"]).parse_args(["up"])
    assert (options.port, options.data, options.ephemeral) == (9092, "./strandline-data", False)
    assert (options.log_format, options.log_level) == ("text", None)


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_is_none_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--port", port])
    assert f"--port: {port} is not a port: give a number from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("nodes", ["0", "16", "many"])
def test_a_number_of_nodes_that_cannot_be_is_refused(nodes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--nodes", nodes])
    assert f"--nodes: {nodes} nodes: 1 to 15" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["reassign plan --topics t", "quotas set --user x --rate 5"])
def test_unknown_option_is_told_with_the_usage_of_its_command(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    said = capsys.readouterr().err
    command = " ".join(words.split()[:2])
    assert said.startswith(f"usage: strandline {command} ")
    assert f"strandline {command}: error: unrecognized arguments: --" in said


def test_progress_is_told_in_a_log_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with Progress() as progress:
        for now in (5.0, 9.0, 10.0, 15.0, 20.0):
            progress.say(f"at {now:g} s")
    assert capsys.readouterr().err == "at 10 s\nat 20 s\n"


def test_docs_prints_every_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    printed = capsys.readouterr().out
    for title in ("# API support", "# Command line", "## strandline up"):
        assert title in printed


def test_docs_writes_every_page(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "--write", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("wrote ") == 4


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["cluster", "status", "--help"], ["up", "--help"]]
)
def test_help_loads_no_client_and_no_broker(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from strandline.cli.main import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        "print(sorted(n for n in sys.modules if n.startswith('strandline.')), file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = ast.literal_eval(ran.stderr)
    heavy = ("strandline.client", "strandline.broker", "strandline.wire", "strandline.node")
    assert [name for name in loaded if name.startswith(heavy)] == []


def _rows() -> list[tuple[str, Command]]:
    found = []
    for name, row in COMMANDS.items():
        if isinstance(row, Group):
            found += [(f"{name} {action}", command) for action, command in row.actions.items()]
        else:
            found.append((name, row))
    return found


@pytest.mark.parametrize(("name", "row"), _rows(), ids=[name for name, _ in _rows()])
def test_every_row_of_the_table_leads_to_a_command(name: str, row: Command) -> None:
    module = import_module(f"strandline.cli.{row.module}")
    assert callable(module.add_arguments)
    assert callable(module.call)
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"])
    assert ended.value.code == 0


def test_every_command_with_json_declares_its_shape() -> None:
    """The shape is at the end of the help, and tests hold documents against it."""
    undeclared, declared = [], 0
    for name, row in _rows():
        parser = argparse.ArgumentParser()
        import_module(f"strandline.cli.{row.module}").add_arguments(parser)
        for each in _with_actions(parser):
            if "--json" in each._option_string_actions:
                declared += each.get_default("json_shape") is not None
                undeclared += [name] if each.get_default("json_shape") is None else []
    assert undeclared == []
    assert declared > 80


def _with_actions(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Returns a parser and the parsers of its actions."""
    found = [parser]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [each for below in action.choices.values() for each in _with_actions(below)]
    return found


def test_python_m_strandline_is_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "strandline", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout == f"strandline {__version__}\n"

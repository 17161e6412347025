"""Files of JSON that commands read: what is wrong with one is told without names of exceptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.cli.failures import CommandError
from strandline.cli.reassign import files
from strandline.cli.topics import delete_records


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "'partitions' is missing"),
        ("x", "not JSON"),
        ('{"partitions": [{"topic": "t"}]}', "is missing"),
    ],
)
def test_file_that_is_not_as_it_should_be_is_told(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    for read in (files.read, delete_records._from_file):
        with pytest.raises(CommandError) as refused:
            read(str(file))
        assert reason in str(refused.value)
        assert "Error" not in str(refused.value)

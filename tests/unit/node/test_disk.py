"""The real disk keeps the port's promises."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.node.disk import RealDisk


def test_parts_are_written_one_after_the_other_and_read_back(tmp_path: Path) -> None:
    file = RealDisk().open(str(tmp_path / "f"), create=True)
    file.write_at(3, (b"abc", memoryview(b"def"), bytearray(b"g")))
    assert file.read_at(0, 100) == b"\x00\x00\x00abcdefg"
    assert file.read_at(4, 2) == b"bc"
    assert file.read_at(50, 5) == b""
    assert file.size() == 10
    file.truncate(5)
    assert file.read_at(0, 100) == b"\x00\x00\x00ab"
    file.close()


def test_a_file_is_opened_only_if_it_is_there_or_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RealDisk().open(str(tmp_path / "f"))
    RealDisk().open(str(tmp_path / "f"), create=True).close()
    RealDisk().open(str(tmp_path / "f")).close()


def test_a_short_write_goes_on_or_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk().open(str(tmp_path / "f"), create=True)
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, at: real(fd, [b"".join(parts)[:4]], at))
    file.write_at(0, (b"abc", b"defgh"))
    assert file.read_at(0, 100) == b"abcdefgh"

    def full(fd: int, data: bytes, at: int) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="full"):
        file.write_at(20, (b"abc", b"defgh"))
    file.close()


def test_a_file_with_two_owners_is_closed_by_the_second(tmp_path: Path) -> None:
    file = RealDisk().open(str(tmp_path / "f"), create=True)
    file.retain()
    file.close()
    assert file.read_at(0, 1) == b""
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.read_at(0, 1)


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    disk, path = RealDisk(), tmp_path / "f"
    for sync in (True, False):
        disk.write_whole(str(path), b"x" * 100_000, sync=sync)
        disk.write_whole(str(path), b"new", sync=sync)
        assert path.read_bytes() == b"new"
    assert disk.names(str(tmp_path)) == ["f"]


def test_a_mapping_shows_the_file_s_contents_also_where_there_are_none(tmp_path: Path) -> None:
    disk = RealDisk()
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "empty").write_bytes(b"")
    assert bytes(disk.map(str(tmp_path / "f"))) == b"abc"
    assert bytes(disk.map(str(tmp_path / "empty"))) == b""
    with pytest.raises(FileNotFoundError):
        disk.map(str(tmp_path / "none"))


def test_names_are_sorted_and_removal_of_what_is_gone_is_no_error(tmp_path: Path) -> None:
    disk = RealDisk()
    for name in ("b", "a", "c"):
        (tmp_path / name).write_bytes(b"")
    disk.remove(str(tmp_path / "b"))
    disk.remove(str(tmp_path / "b"))
    assert disk.names(str(tmp_path)) == ["a", "c"]
    disk.make_directory(str(tmp_path / "d" / "e"))
    disk.make_directory(str(tmp_path / "d" / "e"))
    disk.rename(str(tmp_path / "a"), str(tmp_path / "d" / "e" / "f"))
    disk.remove_directory(str(tmp_path / "d"))
    assert disk.names(str(tmp_path)) == ["c"]


def test_a_lock_is_held_once_and_free_when_given_back(tmp_path: Path) -> None:
    disk, path = RealDisk(), str(tmp_path / ".lock")
    assert disk.lock(path)
    assert not RealDisk().lock(path)
    disk.unlock(path)
    assert RealDisk().lock(path)


def test_a_lock_that_is_given_back_is_free_while_a_forked_child_lives(tmp_path: Path) -> None:
    disk, path = RealDisk(), str(tmp_path / ".lock")
    assert disk.lock(path)
    inherited = os.dup(disk._locks[path])  # what a child has: another number for the same open file
    disk.unlock(path)
    try:
        assert RealDisk().lock(path)
    finally:
        os.close(inherited)


_JAVA_S_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "r+")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("taken", flush=True)
else:
    print("free", flush=True)
sys.stdin.read()
"""


def _takes_it_as_java_does(path: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _JAVA_S_LOCK, path]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_apache_kafka_and_its_tools_see_that_a_directory_is_in_use(tmp_path: Path) -> None:
    disk, path = RealDisk(), str(tmp_path / ".lock")
    assert disk.lock(path)
    with _takes_it_as_java_does(path) as other:
        assert other.communicate(timeout=30)[0] == "taken\n"
    disk.unlock(path)
    with _takes_it_as_java_does(path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "free\n"
        assert not RealDisk().lock(path)
        other.communicate(timeout=30)
    assert RealDisk().lock(path)


def test_a_lock_names_the_process_that_holds_it(tmp_path: Path) -> None:
    disk, path = RealDisk(), str(tmp_path / ".lock")
    assert disk.lock_holder(path) is None
    assert not Path(path).exists(), "to ask makes no file"
    assert disk.lock(path)
    assert disk.lock_holder(path) == RealDisk().lock_holder(path) == os.getpid()
    disk.unlock(path)
    assert disk.lock_holder(path) is None
    with _takes_it_as_java_does(path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "free\n"
        assert disk.lock_holder(path) == other.pid
        other.communicate(timeout=30)


def test_a_second_try_of_the_same_process_leaves_the_lock_as_apache_kafka_sees_it(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    assert RealDisk().lock(path)
    assert not RealDisk().lock(path)
    assert RealDisk().lock_holder(f"{tmp_path}/./.lock") == os.getpid()
    with _takes_it_as_java_does(path) as other:
        assert other.communicate(timeout=30)[0] == "taken\n"


def test_capacity_is_that_of_the_volume(tmp_path: Path) -> None:
    total, usable = RealDisk().capacity(str(tmp_path))
    assert 0 < usable <= total

"""`strandline log` on the files of a partition: what it prints, what it finds, what it repairs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.cli.main import main
from strandline.storage.checkpoints import render_offsets
from strandline.wire.record_batch import headers_in
from tests.batches import NOW_MS, batch, resealed
from tests.hostile_batches import lies
from tests.json_shapes import checked_lines
from tests.unit.storage.cleaning import clean, end_transaction, write
from tests.unit.storage.logs import Store, append, contents


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A stopped partition of three segments: plain, idempotent, an aborted transaction, two leader epochs."""
    store = Store(tmp_path / "t-0", index_interval_bytes=100)
    log = store.open()
    for number in range(10):
        append(log, batch(2, producer_id=7, epoch=0, sequence=2 * number, timestamp=NOW_MS + number))
    log.roll(NOW_MS)
    write(log, (b"k", b"aborted"), producer=(9, 0, 0), is_transactional=True)
    end_transaction(log, 9, 0, commit=False)
    log.roll(NOW_MS)
    for number in range(10):
        append(log, batch(1, codec=4, timestamp=NOW_MS + 100 + number), epoch=2)
    log.close()
    store.files.close()
    return store


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    given = ["log", *map(str, arguments)]
    code = main(given)
    captured = capsys.readouterr()
    if "--json" in given and captured.out:
        checked_lines(captured.out, given)
    return code, captured.out, captured.err


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_dump_prints_every_file_of_a_partition(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "dump", store.path, "--json", "--records")
    assert code == 0
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for row in rows(out):
        by_kind.setdefault(Path(row["file"]).name.lstrip("0123456789"), []).append(row)
    batches = by_kind[".log"]
    assert sum(row["records_count"] for row in batches) == 32
    assert all(row["is_valid"] for row in batches)
    assert batches[0]["records"][0] == {
        "offset": 0,
        "timestamp": NOW_MS,
        "key": "key-0",
        "value": "0.xxxxxxxxxx",
        "headers": [],
    }
    assert [row["marker"] for row in batches if row["is_control"]] == ["abort"]
    assert {row["codec"] for row in batches} == {"none", "zstd"}
    assert [(row["epoch"], row["start_offset"]) for row in by_kind["leader-epoch-checkpoint"]] == [
        (0, 0),
        (2, 22),
    ]
    assert by_kind[".txnindex"][0]["first_offset"] == 20
    assert {row["producer_id"] for row in by_kind[".snapshot"]} == {7, 9}
    assert all(row["position"] > 0 for row in by_kind[".index"])
    assert all(row["timestamp"] >= NOW_MS for row in by_kind[".timeindex"])


def test_dump_without_json_is_for_people(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "dump", store.file(0), "--records")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == str(store.file(0))
    assert "base_offset=0 last_offset=1 records_count=2" in lines[1]
    assert "offset=0" in lines[2]
    assert 'key="key-0"' in lines[2]


def test_dump_says_where_a_file_cannot_be_read_further(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    path = store.file(0)
    path.write_bytes(path.read_bytes()[:-5])
    code, out, _ = run(capsys, "dump", path, "--json")
    assert code == 1
    assert "at position" in rows(out)[-1]["error"]


def test_a_sound_partition_is_sound(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "verify", store.path) == (0, f"{store.path}: sound\n", "")


def test_a_compacted_partition_is_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "c-0", cleanup_policy="compact", index_interval_bytes=50)
    log = store.open()
    for number in range(30):
        write(log, (b"%d" % (number % 4), b"x"), producer=(3, 0, number))
        if number % 10 == 9:
            log.roll(NOW_MS)
    write(log, (b"z", None), producer=(3, 0, 30))
    clean(store, log)
    log.close()
    code, out, _ = run(capsys, "verify", store.path, "--json")
    assert code == 0, out
    assert rows(out)[0]["errors"] == 0


def damage_crc(store: Store) -> None:
    _change(store.file(0), 200, lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:])


def lose_a_batch(store: Store) -> None:
    """A batch of the producer is gone, and the offsets behind it moved up: a sequence is missing."""
    size = len(batch(2, producer_id=7, epoch=0, sequence=0))
    path = store.file(0)
    data = path.read_bytes()
    second = data[size : 2 * size]
    path.write_bytes(data[:size] + resealed(second, base_sequence=9) + data[2 * size :])


def go_back_in_offsets(store: Store) -> None:
    size = len(batch(2, producer_id=7, epoch=0, sequence=0))
    path = store.file(0)
    data = path.read_bytes()
    path.write_bytes(data[: 2 * size] + data[size:])


def disorder_index(store: Store) -> None:
    _change(store.file(0, ".index"), 0, lambda data: data[8:16] + data[:8] + data[16:])


def point_nowhere(store: Store) -> None:
    _change(store.file(0, ".timeindex"), 0, lambda data: data[:11] + bytes([data[11] ^ 4]) + data[12:])


def spoil_snapshot(store: Store) -> None:
    _change(store.file(20, ".snapshot"), 0, lambda data: data[:-1] + bytes([data[-1] ^ 1]))


def forget_epoch(store: Store) -> None:
    (store.path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")


def tear_the_middle(store: Store) -> None:
    _change(store.file(0), 0, lambda data: data[:-7])


def _change(path: Path, _: int, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (damage_crc, "a wrong CRC in the batch at offset"),
        (lose_a_batch, "producer 7 goes on with 9 instead of 2"),
        (go_back_in_offsets, "where at least offset"),
        (disorder_index, "entries do not ascend"),
        (point_nowhere, "no batch ends at offset"),
        (spoil_snapshot, "wrong CRC"),
        (forget_epoch, "epoch 2 is in the log from offset 22 on, and is not here"),
        (tear_the_middle, "and segments follow: it is damaged"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_verify_finds_what_is_wrong_and_where(
    store: Store, capsys: pytest.CaptureFixture[str], damage: Callable[[Store], None], said: str
) -> None:
    damage(store)
    code, out, _ = run(capsys, "verify", store.path, "--json")
    (result,) = rows(out)
    assert code == 1
    assert any(said in finding["what"] for finding in result["findings"]), result["findings"]
    assert all(finding["file"].startswith(str(store.path)) for finding in result["findings"])


def test_verify_of_a_data_directory_looks_at_all_its_partitions(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    data = store.path.parent
    (data / "meta.properties").write_text("version=1\n")
    (data / "other-0").mkdir()
    shutil.copy(store.file(0), data / "other-0")
    code, out, _ = run(capsys, "verify", data)
    assert code == 0
    assert [line for line in out.splitlines() if line.endswith(": sound")] == [
        f"{data}/{name}: sound" for name in sorted(("other-0", store.path.name))
    ]


def test_a_torn_end_is_no_damage_and_repair_cuts_it(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    path = store.file(22)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:50])
    flushed_to(store, 22)
    code, out, _ = run(capsys, "verify", store.path)
    assert code == 0
    assert "a torn end, which recovery cuts" in out
    before = {file.name: file.read_bytes() for file in store.path.iterdir()}
    code, out, _ = run(capsys, "repair", store.path, "--dry-run", "--json")
    assert code == 0
    (dry,) = rows(out)
    assert dry["dry_run"] is True
    assert {file.name: file.read_bytes() for file in store.path.iterdir()} == before, "it only said so"
    code, out, _ = run(capsys, "repair", store.path, "--json")
    (real,) = rows(out)
    assert real["done"] == dry["done"]
    assert any("cut 50 bytes" in note for note in real["done"])
    assert path.read_bytes() == whole
    assert len(contents(store.open())) == 22


def flushed_to(store: Store, offset: int) -> None:
    """As the checkpoint in the data directory says."""
    (store.path.parent / "recovery-point-offset-checkpoint").write_bytes(
        render_offsets({TopicPartition("t", 0): offset})
    )


def test_repair_does_not_touch_what_was_flushed(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    damage_crc(store)
    before = store.file(0).read_bytes()
    flushed_to(store, 32)
    for arguments in ((), ("--dry-run",)):
        code, out, _ = run(capsys, "repair", store.path, *arguments)
        assert code == 1, "the damage stays, and that is told"
        assert "left as it is" in out
        assert "errors are left, because they are in flushed data" in out
    assert store.file(0).read_bytes() == before
    assert run(capsys, "verify", store.path)[0] == 1


def test_repair_of_a_copy_without_its_checkpoint_is_refused_and_cuts_nothing(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage_crc(store)
    flushed_to(store, 32)
    copy = tmp_path / "elsewhere" / "t-0"
    shutil.copytree(store.path, copy)
    before = {file.name: file.read_bytes() for file in copy.iterdir()}
    for arguments in ((), ("--dry-run",)):
        code, out, err = run(capsys, "repair", copy, *arguments)
        assert code == 2
        assert "a repair could cut" in err
        assert "--recovery-point OFFSET" in err
        assert out == ""
    assert {file.name: file.read_bytes() for file in copy.iterdir()} == before


def test_repair_of_a_copy_cuts_what_the_caller_allows(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage_crc(store)
    copy = tmp_path / "elsewhere" / "t-0"
    shutil.copytree(store.path, copy)
    size = sum(file.stat().st_size for file in copy.glob("*.log"))
    assert run(capsys, "repair", copy, "--recovery-point", "32")[0] == 1
    assert sum(file.stat().st_size for file in copy.glob("*.log")) == size
    assert run(capsys, "repair", copy, "--recovery-point", "0")[0] == 0
    assert sum(file.stat().st_size for file in copy.glob("*.log")) < size
    assert run(capsys, "verify", copy)[0] == 0


def test_repair_refuses_while_a_broker_has_the_directory(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    from strandline.node.disk import RealDisk

    disk = RealDisk()
    assert disk.lock(str(store.path.parent / ".lock"))
    code, _, err = run(capsys, "repair", store.path)
    disk.unlock(str(store.path.parent / ".lock"))
    assert code == 2
    assert "stop it first" in err


def test_bad_input_says_what_to_do(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("x")
    shutil.copy(store.file(0), tmp_path / "segment")
    for arguments, said in [
        (("dump", tmp_path / "nowhere"), "No such file"),
        (("dump", other), "is not a file of a partition"),
        (("verify", other), "name that of a partition"),
        (("verify", tmp_path), "name the directory of a partition"),
        (("repair", tmp_path), "is not the directory of a partition"),
        (("at", "--time", "yesterday"), "2026-01-31T12:00:00Z"),
    ]:
        code, _, err = run(capsys, *arguments)
        assert code == 2, arguments
        assert said in err


def test_scrub_status_shows_how_far_the_background_check_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from strandline.node.disk import RealDisk
    from strandline.storage.directory import format_directory
    from strandline.storage.scrubbing import STATE_FILE, ScrubState
    from strandline.storage.segment import DamagedSegment

    code, _, err = run(capsys, "scrub", "--status", tmp_path)
    assert code == 2
    assert "is not the log directory of a broker" in err
    format_directory(RealDisk(), str(tmp_path), cluster_id="c", node_id=1, directory_id=bytes(15) + b"1")
    code, out, _ = run(capsys, "scrub", "--status", tmp_path)
    assert code == 0
    assert "no broker has scrubbed it yet" in out
    state = ScrubState(started_ms=1000, next_partition="t-0", segments=3, bytes_read=900)
    (tmp_path / STATE_FILE).write_bytes(state.render())
    code, out, _ = run(capsys, "scrub", "--status", tmp_path)
    assert code == 0
    assert "at t-0; began 1970-01-01T00:00:01+00:00, last whole pass never; 3 segments, 900 bytes" in out
    state.note(DamagedSegment("a file", 7, "a batch with a wrong CRC"))
    (tmp_path / STATE_FILE).write_bytes(state.render())
    code, out, _ = run(capsys, "scrub", "--status", tmp_path, "--json")
    assert code == 1
    assert rows(out)[0]["findings"] == ["a file is damaged at position 7: a batch with a wrong CRC"]
    (tmp_path / STATE_FILE).write_bytes(b"junk")
    assert run(capsys, "scrub", "--status", tmp_path)[0] == 0


@pytest.fixture
def poisoned(tmp_path: Path) -> Store:
    """A partition that 0.1.0 let two malformed batches into, at offsets 2 and 4, between sound ones."""
    store = Store(tmp_path / "p-0", index_interval_bytes=1)
    log = store.open()
    append(log, batch(2))
    append(log, lies(0)["bytes after the last record"])
    append(log, batch(1))
    append(log, lies(2)["count 2 with one record"])
    append(log, batch(3))
    log.close()
    store.files.close()
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(render_offsets({TopicPartition("p", 0): 9}))
    return store


def test_verify_lists_malformed_batches(poisoned: Store, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "verify", poisoned.path)
    assert code == 1
    assert "the batch at offset 2, position" in out
    assert "bytes stand after the last record" in out
    assert "the batch at offset 4, position" in out
    assert out.endswith("2 errors\n")


def test_a_malformed_batch_is_dropped_with_consent_and_its_offsets_stay(
    poisoned: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    before = poisoned.path.joinpath("00000000000000000000.log").read_bytes()
    code, _, err = run(capsys, "repair", poisoned.path, "--drop-batch", 2)
    assert code == 2
    assert "add --yes" in err
    code, out, _ = run(capsys, "repair", poisoned.path, "--drop-batch", 2, "--dry-run")
    assert "emptied the batch at offset 2: bytes stand after the last record" in out
    assert poisoned.path.joinpath("00000000000000000000.log").read_bytes() == before
    code, out, _ = run(capsys, "repair", poisoned.path, "--drop-batch", 2, "--drop-batch", 4, "--yes")
    assert code == 0, out
    assert run(capsys, "verify", poisoned.path)[0] == 0
    log = poisoned.open()
    assert log.log_end_offset == 9
    data = poisoned.path.joinpath("00000000000000000000.log").read_bytes()
    counts = [header.record_count for _, header in headers_in(data)]
    assert counts == [2, 0, 1, 0, 3]
    assert contents(log) == [(0, 1), (2, 2), (3, 3), (4, 5), (6, 8)]
    log.close()


def test_only_a_batch_that_cannot_be_read_is_dropped(
    poisoned: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    before = poisoned.path.joinpath("00000000000000000000.log").read_bytes()
    for offset, why in ((0, "is sound"), (1, "no batch begins"), (99, "no batch begins")):
        code, _, err = run(capsys, "repair", poisoned.path, "--drop-batch", offset, "--yes")
        assert code == 2
        assert why in err
    assert poisoned.path.joinpath("00000000000000000000.log").read_bytes() == before

"""The kernel and the rules in Python come to the same verdict on any batch, sound or not."""

from __future__ import annotations

from random import Random

import pytest

from strandline.wire.kernel import KERNEL, load
from strandline.wire.record_batch import CorruptBatch, read_header, records_in
from strandline.wire.record_check import (
    LIMIT_FAULTS,
    Limits,
    RecordFault,
    RecordVerdict,
    check_in_python,
)
from tests.hostile_batches import CODECS, broken_streams, lies, mutated, stricter_than_kafka

from .effort import IS_SOAK

needs_kernel = pytest.mark.skipif(KERNEL is None, reason="the kernel is not built: there is no Rust compiler")

SAMPLES = 1_000_000 if IS_SOAK else 6_000
LIMITS = Limits()


def by_kernel(data: bytes, limits: Limits = LIMITS) -> RecordVerdict:
    assert KERNEL is not None
    return RecordVerdict._make(KERNEL.check(data, *limits))


def assert_same(data: bytes, name: object) -> None:
    expected, found = check_in_python(data, LIMITS), by_kernel(data)
    if read_header(data).codec == 0:
        # A verdict with a fault says nothing of timestamps.
        assert found[:2] == expected[:2], name
    # A compressed batch is walked while it is inflated, and may show another of its faults first.
    assert bool(found.fault) == bool(expected.fault), (name, expected, found)
    if not expected.fault:
        assert found == expected, name


@needs_kernel
def test_kernel_and_python_agree_on_every_lie() -> None:
    for codec in CODECS:
        for name, data in (lies(codec) | stricter_than_kafka(codec)).items():
            assert check_in_python(data, LIMITS).fault, name
            assert_same(data, name)
    for name, data in broken_streams().items():
        assert check_in_python(data, LIMITS).fault, name
        assert_same(data, name)


@needs_kernel
def test_kernel_and_python_agree_on_mutated_batches() -> None:
    first = Random().randrange(1 << 40) if IS_SOAK else 0
    for seed in range(first, first + SAMPLES):
        assert_same(mutated(Random(seed)), f"mutated(Random({seed}))")


def test_gzip_that_copies_from_before_its_first_byte_is_refused() -> None:
    """Found by the search above: one decoder took it, and Java and zlib do not."""
    data = mutated(Random(423824228878))
    assert check_in_python(data, LIMITS).fault == RecordFault.CODEC
    assert KERNEL is None or by_kernel(data).fault == RecordFault.CODEC


@needs_kernel
def test_kernel_and_python_agree_on_limits() -> None:
    for seed in range(600):
        data = mutated(Random(seed))
        for limits in (Limits(100, 1 << 30), Limits(1 << 30, 2)):
            expected, found = check_in_python(data, limits), by_kernel(data, limits)
            assert bool(found.fault) == bool(expected.fault), seed
            if found.fault in LIMIT_FAULTS and found.fault == RecordFault.TOO_MANY_RECORDS:
                assert found == expected, seed


def test_a_sound_batch_is_one_that_can_be_decoded() -> None:
    """The decoder of records is older than the check, and written apart from it."""
    for seed in range(SAMPLES // 3):
        data = mutated(Random(seed))
        verdict = check_in_python(data, LIMITS)
        if verdict.fault == RecordFault.NONE:
            records = records_in(data)
            assert len(records) == read_header(data).record_count
            if not read_header(data).uses_log_append_time:
                assert verdict.max_timestamp == max(-1, *(record.timestamp for record in records))
            assert verdict.keyless_count == sum(record.key is None for record in records)
        elif verdict.fault not in (
            *LIMIT_FAULTS,
            RecordFault.OFFSET_DELTA,
            RecordFault.VARINT,
            RecordFault.HEADER,
            RecordFault.CODEC,
        ):
            with pytest.raises(CorruptBatch):
                records_in(data)


def test_a_kernel_that_is_missing_old_or_broken_is_replaced_with_one_line(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathlib import Path

    directory = Path(str(tmp_path))
    (directory / "kernel_of_another_abi.py").write_text("ABI = 99\ndef check(): ...\n")
    (directory / "kernel_that_fails.py").write_text("raise ImportError('libz.so: wrong ELF class')\n")
    (directory / "kernel_without_a_check.py").write_text("ABI = 1\n")
    monkeypatch.syspath_prepend(str(directory))
    reasons = {
        "kernel_of_another_abi": "ABI 99",
        "kernel_that_fails": "wrong ELF class",
        "kernel_without_a_check": "check",
        "kernel_that_nobody_has": "not installed",
    }
    for name, reason in reasons.items():
        kernel, note = load(name)
        assert kernel is None
        assert reason in note
        assert "strandline[fast]" in note
        assert "\n" not in note

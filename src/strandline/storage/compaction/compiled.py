"""The map of keys as compiled code, for large logs. It runs in another process, where numpy and numba may be loaded.

It takes 24 bytes for a slot, as Apache Kafka's does, and begins small: it grows as keys come. Compiled code is kept
beside the source or in the user's cache directory, so only the first use after an installation waits for the compiler.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from strandline.base.kernels import compiled_copy
from strandline.storage.compaction import kernels as source
from strandline.storage.compaction.keys import Judged
from strandline.wire.record_batch import CorruptBatch, encode_record

_SLOT_BYTES: Final = 8 * source.SLOT
_SLOTS_FIRST: Final = 1 << 16
# The load at which a table grows, and the load that the largest table may have.
_LOAD_MAX: Final = 0.6
# In the order in which they call each other.
_NAMES: Final = (
    "read_varint",
    "mixed",
    "hashes",
    "slot_of",
    "move_keys",
    "read_record",
    "note_keys",
    "judge_records",
)


@cache
def _kernels() -> Any:
    return compiled_copy(source, _NAMES)


class CompiledKeyMap:
    def __init__(self, bytes_max: int, seed: int) -> None:
        self._kernels = _kernels()
        self._slots_max = max(1 << (max(bytes_max // _SLOT_BYTES, 1).bit_length() - 1), _SLOTS_FIRST)
        # Signed, like the integers of the kernels.
        self._seed = seed - (1 << 64) if seed >= 1 << 63 else seed
        self._table = np.zeros(_SLOTS_FIRST * source.SLOT, np.int64)
        self._used = 0
        self._runs = np.zeros(0, np.int64)
        self._totals = np.zeros(source.TOTALS_SIZE, np.int64)
        self.latest_offset = -1

    def __len__(self) -> int:
        return self._used

    def note(self, body: bytes, count: int, base_offset: int, from_offset: int) -> bool:
        while self._used + count > _LOAD_MAX * (len(self._table) // source.SLOT):
            if len(self._table) // source.SLOT >= self._slots_max and self._used:
                return False
            larger = np.zeros(2 * len(self._table), np.int64)
            self._kernels.move_keys(self._table, larger)
            self._table = larger
        data = np.frombuffer(body, np.uint8)
        new = self._kernels.note_keys(data, count, base_offset, from_offset, self._table, self._seed)
        if new < 0:
            raise CorruptBatch(f"records of the batch at offset {base_offset} cannot be read")
        self._used += new
        return True

    def judge(self, body: bytes, count: int, base_offset: int, *, keeps_tombstones: bool) -> Judged:
        if len(self._runs) < 2 * count:
            self._runs = np.zeros(2 * count, np.int64)
        runs, totals = self._runs, self._totals
        run_count = self._kernels.judge_records(
            np.frombuffer(body, np.uint8),
            count,
            base_offset,
            self.latest_offset,
            int(keeps_tombstones),
            self._table,
            self._seed,
            runs,
            totals,
        )
        if run_count < 0:
            raise CorruptBatch(f"records of the batch at offset {base_offset} cannot be read")
        ends = runs[: 2 * run_count].tolist()
        retained, tombstones, max_delta = totals.tolist()
        return Judged(retained, list(zip(ends[::2], ends[1::2], strict=True)), bool(tombstones), max_delta)


def warm_up() -> None:
    """Compiles all kernels now, so that the first use does not wait for the compiler."""
    key_map = CompiledKeyMap(0, 1)
    body = encode_record(0, 0, b"key", b"value")
    key_map.note(body, 1, 0, 0)
    key_map.judge(body, 1, 0, keeps_tombstones=True)
    key_map._kernels.move_keys(key_map._table, np.zeros(2 * len(key_map._table), np.int64))

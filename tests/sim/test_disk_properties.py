"""The simulated disk keeps its promises whatever is done to it: what was synced survives, the rest is chance."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.sim.disk import SimulatedDisk
from strandline.sim.engine.disk_faults import DiskFaults
from strandline.sim.engine.page_cache import PAGE_BYTES, PageCache
from strandline.sim.engine.process_life import ProcessLife
from strandline.sim.engine.trace import Trace
from strandline.sim.random import generator

SIZE_MAX = 5 * PAGE_BYTES


class Machine:
    """A volume, and the disk of the process that runs now."""

    def __init__(self, seed: int, *, capacity_bytes: int = 1 << 30) -> None:
        self._seed = seed
        self.volume = PageCache(generator(seed, "volume"), capacity_bytes=capacity_bytes)
        self.faults = DiskFaults()
        self._boot()

    def _boot(self) -> None:
        self._life = ProcessLife("machine")
        self.disk = SimulatedDisk(
            self.volume, self._life, self.faults, generator(self._seed, "disk"), Trace()
        )

    def crash(self, *, power_cut: bool) -> None:
        self._life.end("crash", power_cut=power_cut)
        self.volume.crash(power_cut=power_cut)
        self._boot()


chunks = st.builds(
    lambda byte, size: bytes((byte,)) * size, st.integers(1, 255), st.integers(1, 2 * PAGE_BYTES)
)
writes = st.tuples(st.just("write"), st.integers(0, SIZE_MAX), chunks)
cuts = st.tuples(st.just("truncate"), st.integers(0, SIZE_MAX), st.just(b""))
syncs = st.tuples(st.sampled_from(("sync", "failed sync")), st.just(0), st.just(b""))
steps = st.lists(st.one_of(writes, writes, cuts, syncs), max_size=12)


# Bytes that are looked at one by one: enough to meet every page and sector, few enough to be quick.
PROBES = range(0, SIZE_MAX + 2 * PAGE_BYTES, 151)


class Model:
    """The values that a byte of a file may have after a power cut: one synced value, and every value written since."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.synced = b""
        self.possible: dict[int, set[int]] = {position: {0} for position in PROBES}
        self.shortest = 0  # since the last sync that worked

    def apply(self, step: tuple[str, int, bytes]) -> None:
        kind, position, data = step
        if kind == "write":
            self.content += bytes(max(0, position - len(self.content)))
            self.content[position : position + len(data)] = data
        elif kind == "truncate":
            if position < len(self.content):
                del self.content[position:]
                self.shortest = min(self.shortest, position)
                for cut, values in self.possible.items():
                    if cut >= position:
                        values.add(0)  # written again and not synced it may be a hole
            else:
                self.content += bytes(position - len(self.content))
        self._note()

    def _note(self) -> None:
        for position, values in self.possible.items():
            if position < len(self.content):
                values.add(self.content[position])

    def was_synced(self) -> None:
        self.synced = bytes(self.content)
        self.shortest = len(self.content)
        for position in PROBES:
            self.possible[position] = {self.content[position] if position < len(self.content) else 0}


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 32), steps=steps)
def test_synced_bytes_survive_every_power_cut_and_no_byte_comes_from_nowhere(
    seed: int, steps: list[tuple[str, int, bytes]]
) -> None:
    machine, model = Machine(seed), Model()
    file = machine.disk.open("/file", create=True)
    machine.disk.sync_directory("/")
    failed = False
    for step in steps:
        if step[0] == "failed sync":
            machine.faults.fail("sync", "/file", errno.EIO, times=1)
            with pytest.raises(OSError):
                file.sync()
            failed = True
        elif step[0] == "sync":
            file.sync()
            if not failed:
                model.was_synced()
        elif step[0] == "write":
            file.write_at(step[1], (step[2],))
            model.apply(step)
        else:
            file.truncate(step[1])
            model.apply(step)
    assert machine.disk.read("/file") == model.content
    machine.crash(power_cut=True)
    after = machine.disk.read("/file")
    certain = min(len(model.synced), model.shortest)
    assert len(after) >= certain
    for position, values in model.possible.items():
        if position < len(after):
            assert after[position] in values
        if position < certain and len(values) == 1:  # nothing has touched it since it was synced
            assert after[position] == model.synced[position]
    assert machine.volume.used_bytes == len(after)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 1 << 32), steps=steps)
def test_a_killed_process_loses_nothing_it_had_written(
    seed: int, steps: list[tuple[str, int, bytes]]
) -> None:
    machine, model = Machine(seed), Model()
    file = machine.disk.open("/file", create=True)
    for step in steps:
        if step[0] == "write":
            file.write_at(step[1], (step[2],))
        elif step[0] == "truncate":
            file.truncate(step[1])
        if "sync" not in step[0]:
            model.apply(step)
    machine.crash(power_cut=False)
    assert machine.disk.read("/file") == model.content


names = st.sampled_from("abcd")
entries = st.lists(
    st.one_of(
        st.tuples(st.just("create"), names, names),
        st.tuples(st.just("rename"), names, names),
        st.tuples(st.just("remove"), names, names),
        st.tuples(st.just("sync"), names, names),
    ),
    max_size=15,
)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 32), entries=entries)
def test_a_directory_is_after_a_power_cut_what_it_was_at_some_moment_since_its_sync(
    seed: int, entries: list[tuple[str, str, str]]
) -> None:
    machine = Machine(seed)
    disk = machine.disk
    disk.make_directory("/d")
    disk.sync_directory("/")
    moments = [disk.names("/d")]
    for kind, one, other in entries:
        if kind == "create":
            disk.open(f"/d/{one}", create=True).close()
        elif kind == "rename" and disk.exists(f"/d/{one}") and one != other:
            disk.rename(f"/d/{one}", f"/d/{other}")
        elif kind == "remove":
            disk.remove(f"/d/{one}")
        elif kind == "sync":
            disk.sync_directory("/d")
            moments.clear()
        moments.append(disk.names("/d"))
    machine.crash(power_cut=True)
    assert machine.disk.names("/d") in moments


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), old=chunks, new=chunks)
def test_a_file_replaced_whole_is_the_old_or_the_new_one_and_with_sync_the_new_one(
    seed: int, old: bytes, new: bytes
) -> None:
    machine = Machine(seed)
    machine.disk.write_whole("/file", old)
    machine.disk.write_whole("/file", new)
    machine.crash(power_cut=True)
    assert machine.disk.read("/file") == new
    machine.faults.fail("sync", "/file.tmp", errno.EIO)
    with pytest.raises(OSError):
        machine.disk.write_whole("/file", old)
    machine.crash(power_cut=True)
    assert machine.disk.read("/file") == new


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 1 << 32), capacity=st.integers(0, SIZE_MAX), data=chunks, position=st.integers(0, 100)
)
def test_a_full_disk_takes_what_fits_and_says_so(
    seed: int, capacity: int, data: bytes, position: int
) -> None:
    machine = Machine(seed, capacity_bytes=capacity)
    file = machine.disk.open("/file", create=True)
    if position + len(data) <= capacity:
        file.write_at(position, (data,))
        assert machine.disk.read("/file") == bytes(position) + data
    else:
        with pytest.raises(OSError) as raised:
            file.write_at(position, (data,))
        assert raised.value.errno == errno.ENOSPC
        assert file.size() <= capacity
    assert machine.volume.used_bytes == file.size()
    file.truncate(0)
    machine.disk.remove("/file")
    assert machine.disk.capacity("/") == (capacity, capacity)


def test_a_removed_file_can_be_read_while_it_is_open_and_takes_room_until_it_is_closed() -> None:
    machine = Machine(1)
    file = machine.disk.open("/file", create=True)
    file.write_at(0, (b"x" * 100,))
    file.retain()
    machine.disk.remove("/file")
    file.close()
    assert file.read_at(50, 100) == b"x" * 50
    assert machine.volume.used_bytes == 100
    file.close()
    assert machine.volume.used_bytes == 0


def test_a_lock_is_held_until_its_process_ends() -> None:
    machine = Machine(1)
    assert machine.disk.lock("/lock")
    other = SimulatedDisk(machine.volume, ProcessLife("other"), DiskFaults(), generator(1), Trace())
    assert not other.lock("/lock")
    machine.crash(power_cut=False)
    assert other.lock("/lock")
    other.unlock("/lock")
    assert machine.disk.lock("/lock")


def test_preallocated_room_is_zeros_and_counts_as_used() -> None:
    machine = Machine(1, capacity_bytes=1000)
    file = machine.disk.open("/file", create=True)
    file.preallocate(600)
    assert file.read_at(0, 1000) == bytes(600)
    with pytest.raises(OSError):
        machine.disk.open("/other", create=True).preallocate(401)
    assert machine.volume.used_bytes == 600

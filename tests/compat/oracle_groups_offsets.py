"""Conversations about committed offsets."""

from __future__ import annotations

from collections.abc import Callable

from strandline.wire.api.k08_offset_commit import OffsetCommitRequest
from strandline.wire.api.k42_delete_groups import DeleteGroupsRequest
from tests.compat.oracle_groups import Talk
from tests.compat.oracle_groups_classic import formed
from tests.group_requests import commit, delete_offsets, fetch_offsets


def each_version(talk: Talk) -> None:
    ids = talk.topic_ids
    for version in range(2, 11):
        request = commit(
            f"v{version}", {0: 10 + version, 3: 5}, topic_id=ids["orders"], metadata="note", leader_epoch=2
        )
        if version < 6:
            request = commit(f"v{version}", {0: 10 + version, 3: 5}, metadata="note")
        talk(f"commit v{version}", request, version)
    for version in range(1, 11):
        talk(
            f"fetch v{version}",
            fetch_offsets("v7", partitions=(0, 1, 3), topic_id=ids["orders"], require_stable=version >= 7),
            version,
        )
        if version >= 2:
            talk(f"fetch all v{version}", fetch_offsets("v7", partitions=None), version)
        talk(f"fetch of no group v{version}", fetch_offsets("no-such-group", topic_id=ids["orders"]), version)
    talk("fetch several", fetch_offsets("v2", "no-such-group", "v9", partitions=None), 9)


def bad_commits(talk: Talk) -> None:
    group = "bad-commits"
    ids = talk.topic_ids
    for version in (7, 9, 10):
        name = f"v{version}"
        talk(f"{name} unknown partition", commit(group, {0: 1, 9: 1}, topic_id=ids["orders"]), version)
        talk(f"{name} unknown topic", commit(group, {0: 1}, topic="no-such", topic_id=b"\1" * 16), version)
        talk(f"{name} long note", commit(group, {0: 1}, metadata="n" * 101, topic_id=ids["orders"]), version)
        talk(
            f"{name} note of more bytes than characters",
            commit(group, {0: 2}, metadata="ü" * 98 + "𝄞", topic_id=ids["orders"]),
            version,
        )
        talk(
            f"{name} note of two units more",
            commit(group, {0: 3}, metadata="ü" * 99 + "𝄞", topic_id=ids["orders"]),
            version,
        )
        talk(
            f"{name} note at the limit",
            commit(group, {1: 1}, metadata="n" * 100, topic_id=ids["orders"]),
            version,
        )
        talk(f"{name} null note", commit(group, {2: 1}, metadata=None, topic_id=ids["orders"]), version)
        talk(f"{name} negative offset", commit(group, {3: -1}, topic_id=ids["orders"]), version)
        talk(f"{name} empty group", commit("", {0: 4}, topic_id=ids["orders"]), version)
        talk(
            f"{name} generation of no group",
            commit("nowhere", {0: 4}, generation=3, topic_id=ids["orders"]),
            version,
        )
        talk(
            f"{name} member of no group",
            commit("nowhere2", {0: 4}, member="m", topic_id=ids["orders"]),
            version,
        )
    nothing = "commits-nothing"
    talk("unknown topic only", commit(nothing, {0: 1}, topic="no-such"), 9)
    talk("unknown partition only", commit(nothing, {99: 1}), 9)
    talk("no topics", OffsetCommitRequest(group_id=nothing, member_id="", topics=()), 9)
    talk("made no group", delete_offsets(nothing, (0,)), 0)
    talk("fetch", fetch_offsets(group, partitions=None), 9)
    talk("fetch of the empty group", fetch_offsets("", partitions=(0,)), 7)
    talk("fetch unknown id", fetch_offsets(group, topic_id=b"\1" * 16), 10)
    talk("fetch unknown name", fetch_offsets(group, topic="no-such"), 9)
    talk("fetch unknown partition", fetch_offsets(group, partitions=(99,)), 9)


def deletion(talk: Talk) -> None:
    group = "deletion"
    talk("of no group", delete_offsets("no-such-group", (0,)), 0)
    talk("of the empty group id", delete_offsets("nobody", (0,)), 0)
    talk.quietly(commit(group, {0: 1, 1: 2, 2: 3}), 9)
    talk("some", delete_offsets(group, (0, 3, 99)), 0)
    talk("of an unknown topic", delete_offsets(group, (0,), topic="no-such"), 0)
    talk("what is left", fetch_offsets(group, partitions=None), 9)
    member, generation = formed(talk, group)
    talk.quietly(commit(group, {0: 5}, member=member, generation=generation, topic="other"), 9)
    talk("of a topic in use", delete_offsets(group, (1,)), 0)
    talk("of another topic", delete_offsets(group, (0,), topic="other"), 0)
    talk("delete the group", DeleteGroupsRequest(groups_names=(group,)), 1)
    talk("what is left now", fetch_offsets(group, partitions=None), 9)


CONVERSATIONS: dict[str, Callable[[Talk], None]] = {
    "offsets in each version": each_version,
    "bad commits": bad_commits,
    "deletion of offsets": deletion,
}

"""A coordinator of classic groups: requests of members in, responses and the group's state out.

Members have names instead of the ids that the coordinator gives them. Time is in milliseconds, and moves by `wait`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.groups.classic.group import ClassicGroup
from strandline.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from strandline.wire.api.k12_heartbeat import HeartbeatRequest
from strandline.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.transcripts.transcript import check
from tests.unit.groups.machine import Machine, Token

FILES = sorted((Path(__file__).parent / "classic_groups").glob("*.txt"))
GROUP = "g"


class Story:
    def __init__(self) -> None:
        self.machine = Machine()
        self._ids: dict[str, str] = {}
        self._waiting: list[tuple[str, str, Token]] = []

    def interpret(self, name: str, given: dict[str, str]) -> Iterator[str]:
        if name == "wait":
            self.machine.ms += int(given["ms"])
        else:
            self._send(name, given)
        for result in self.machine.shard.expire(self.machine.now()):
            self.machine.run(result)
        yield from self._responses()
        yield self.state()

    def _send(self, name: str, given: dict[str, str]) -> None:
        member = given["member"]
        request = getattr(self, f"_{name}")(member, given)
        self._waiting.append((name, member, self.machine.send(request, client=member)))

    def _join(self, member: str, given: dict[str, str]) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=int(given.get("session", "10000")),
            rebalance_timeout_ms=int(given.get("rebalance", "5000")),
            member_id=self._ids.get(member, ""),
            group_instance_id=given.get("instance"),
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=member.encode()),),
        )

    def _sync(self, member: str, given: dict[str, str]) -> SyncGroupRequest:
        assignments = [each.split(":") for each in given.get("assign", "").split(",") if each]
        return SyncGroupRequest(
            group_id=GROUP,
            generation_id=int(given["generation"]),
            member_id=self._ids[member],
            group_instance_id=given.get("instance"),
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=self._ids[to], assignment=what.encode())
                for to, what in assignments
            ),
        )

    def _heartbeat(self, member: str, given: dict[str, str]) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=GROUP,
            generation_id=int(given["generation"]),
            member_id=self._ids[member],
            group_instance_id=given.get("instance"),
        )

    def _leave(self, member: str, given: dict[str, str]) -> LeaveGroupRequest:
        identity = MemberIdentity(member_id=self._ids[member], group_instance_id=given.get("instance"))
        return LeaveGroupRequest(group_id=GROUP, members=(identity,))

    def _responses(self) -> Iterator[str]:
        waiting, self._waiting = self._waiting, []
        for name, member, token in waiting:
            if token.response is None:
                self._waiting.append((name, member, token))
                continue
            yield f"{name} of {member}: {self._shown(member, token.response)}"
        if self._waiting:
            yield "waiting: " + ", ".join(f"{name} of {member}" for name, member, _ in self._waiting)

    def _shown(self, member: str, response: Any) -> str:
        code = ErrorCode(response.error_code).name
        if getattr(response, "member_id", ""):
            self._ids[member] = response.member_id
        parts = [code]
        if getattr(response, "generation_id", -1) > 0:
            parts.append(f"generation {response.generation_id}, leader {self._name(response.leader)}")
            if response.members:
                parts.append(
                    "members " + ",".join(sorted(self._name(each.member_id) for each in response.members))
                )
        if getattr(response, "assignment", b""):
            parts.append(f"assignment {bytes(response.assignment).decode()}")
        return ", ".join(parts)

    def _name(self, member_id: str) -> str:
        return next((name for name, known in self._ids.items() if known == member_id), "?")

    def state(self) -> str:
        group = self.machine.shard.groups.get(GROUP)
        if not isinstance(group, ClassicGroup):
            return "  no group"
        members = ",".join(sorted(self._name(each) for each in group.members))
        return f"  {group.state}  generation {group.generation}  members {members or '-'}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_transcript(path: Path, request: pytest.FixtureRequest) -> None:
    check(path, Story().interpret, rewrite=bool(request.config.getoption("--rewrite", False)))

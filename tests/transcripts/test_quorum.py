"""One node of the metadata quorum: events in, effects out, with the role that it has afterwards.

An event is named as in `quorum/messages.py`, with its fields as Python. The shell's responses to writes are commands of
their own (`ElectionPersisted`, `LogSynced`), because the rules are about what must not happen before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from strandline.quorum import messages as m
from strandline.quorum.core import Quorum
from strandline.quorum.settings import QuorumSettings
from strandline.quorum.voters import ReplicaKey, Voter, VoterHistory, VoterSet
from tests.transcripts.transcript import check, numbers

FILES = sorted((Path(__file__).parent / "quorum").glob("*.txt"))
TOKEN = object()


def key(replica_id: int) -> ReplicaKey:
    return ReplicaKey(replica_id, bytes([replica_id]) * 16)


def voter(replica_id: int) -> Voter:
    return Voter(key=key(replica_id))


class Story:
    """`node` begins; `wait` moves the clock and tells the core that time has passed; any other command is an event."""

    def __init__(self) -> None:
        self.core: Quorum | None = None
        self.now = 0.0

    def interpret(self, name: str, given: dict[str, str]) -> Iterator[str]:
        if name == "node":
            self.core = self._node(given)
            yield self.state()
            return
        assert self.core is not None, "a transcript begins with `node`"
        if name == "wait":
            self.now += float(given["seconds"])
            event: Any = m.TimePassed()
        else:
            event = self._event(name, given)
        for effect in self.core.step(event, self.now):
            yield _shown(effect)
        self.core.check_invariants()
        yield self.state()

    def _node(self, given: dict[str, str]) -> Quorum:
        ids = numbers(given["voters"])
        return Quorum(
            own=voter(int(given["id"])),
            history=VoterHistory(VoterSet(tuple(voter(each) for each in ids))),
            settings=QuorumSettings(),
            election=m.Election(epoch=int(given.get("epoch", "0"))),
            log=m.LogSynced(end_offset=int(given.get("end", "0")), epochs=_value(given.get("epochs", "()"))),
            log_start=0,
            jitter=lambda: 0.5,
            now=self.now,
        )

    def _event(self, name: str, given: dict[str, str]) -> Any:
        kind = getattr(m, name)
        values = {each: _value(text) for each, text in given.items()}
        if "token" in {each.name for each in fields(kind)}:
            values["token"] = TOKEN
        return kind(**values)

    def state(self) -> str:
        core = self.core
        assert core is not None
        role = type(core.role).__name__.lower()
        return f"  {role} of epoch {core.epoch}  leader {core.leader_id}  end {core.log_end}  hw {core.high_watermark}"


def _value(text: str) -> Any:
    names = {"key": key, "OffsetAndEpoch": m.OffsetAndEpoch, "Election": m.Election}
    return eval(text, {"__builtins__": {}}, {**names, "True": True, "False": False, "None": None})


def _shown(effect: Any) -> str:
    parts = []
    for each in fields(effect):
        value = getattr(effect, each.name)
        if value is TOKEN or value in ("", None):
            continue
        parts.append(f"{each.name}={_plain(value)}")
    return f"{type(effect).__name__} {' '.join(parts)}".rstrip()


def _plain(value: Any) -> str:
    if isinstance(value, ReplicaKey):
        return str(value.replica_id)
    if isinstance(value, m.Election):
        voted = "-" if value.voted is None else value.voted.replica_id
        return f"(epoch {value.epoch}, leader {value.leader_id}, voted {voted})"
    if isinstance(value, m.OffsetAndEpoch):
        return f"{value.offset}/{value.epoch}"
    if isinstance(value, tuple):
        return "(" + ",".join(_plain(each) for each in value) + ")"
    return str(value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_transcript(path: Path, request: pytest.FixtureRequest) -> None:
    check(path, Story().interpret, rewrite=bool(request.config.getoption("--rewrite", False)))

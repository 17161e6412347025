"""Replication: followers fetch and truncate where they must; the leader responds, and commits what a majority has."""

from __future__ import annotations

from strandline.quorum import messages as m
from strandline.quorum.epochs import diverging_point, end_of, last_epoch
from strandline.quorum.messages import Effect, OffsetAndEpoch
from strandline.quorum.roles import (
    Follower,
    Leader,
    ReplicaProgress,
)
from strandline.quorum.state import QuorumState
from strandline.quorum.voters import is_same


class Fetching(QuorumState):
    def _fetch_requested(self, event: m.FetchRequested, now: float) -> list[Effect]:
        role = self.role
        if event.epoch < self.epoch:
            return [self._fetch_response(event, error="FENCED_LEADER_EPOCH")]
        if event.epoch > self.epoch:
            return [self._fetch_response(event, error="UNKNOWN_LEADER_EPOCH")]
        if not isinstance(role, Leader):
            return [self._fetch_response(event, error="NOT_LEADER_OR_FOLLOWER")]
        if self._is_before_snapshot(event):
            return [self._fetch_response(event, snapshot=self.latest_snapshot)]
        diverging = diverging_point(
            self.epochs, self.log_start, self.log_end, event.offset, event.last_fetched_epoch
        )
        if diverging is not None or event.offset > self.log_end:
            point = diverging or OffsetAndEpoch(self.log_end, last_epoch(self.epochs))
            return [self._fetch_response(event, diverging=point)]
        effects = self._note_progress(role, event, now)
        if event.offset < self.log_end or effects or event.high_watermark < self.high_watermark:
            return [*effects, self._fetch_response(event, offset=event.offset)]
        role.waiting.append((event.token, event.offset))
        return effects

    def _is_before_snapshot(self, event: m.FetchRequested) -> bool:
        """Returns True if a replica's log ends before this one begins: it needs the snapshot, because the logs cannot
        be compared."""
        snapshot = self.latest_snapshot
        if snapshot is None:
            assert self.log_start == 0, "a log that does not begin at 0 has a snapshot"
            return False
        if event.offset <= self.log_start:
            return event.offset < self.log_start or event.last_fetched_epoch != snapshot.epoch
        return event.last_fetched_epoch < snapshot.epoch

    def _note_progress(self, role: Leader, event: m.FetchRequested, now: float) -> list[Effect]:
        key = next((k for k in role.replicas if is_same(k, event.replica)), event.replica)
        progress = role.replicas.setdefault(key, ReplicaProgress())
        if key != event.replica:
            role.directories[event.replica.replica_id] = event.replica
        progress.has_begun = True
        progress.last_fetch = now
        if event.offset >= self.log_end:
            progress.last_caught_up = now
        progress.end_offset = max(progress.end_offset, event.offset)
        self._extend_check(role, now)
        return self._advance(role)

    def _extend_check(self, role: Leader, now: float) -> None:
        recent = now - self._settings.check_quorum_s
        heard = set()
        for voter in self.voters:
            progress = self._progress_of(role, voter)
            if is_same(voter, self.own) or (progress is not None and progress.last_fetch > recent):
                heard.add(voter.replica_id)
        if self._is_majority(heard):
            role.check_deadline = self._check_deadline(now)

    def _advance(self, role: Leader) -> list[Effect]:
        ends = []
        for voter in self.voters:
            if is_same(voter, self.own):
                ends.append(self.log_end)
            else:
                progress = self._progress_of(role, voter)
                ends.append(-1 if progress is None else progress.end_offset)
        committed = sorted(ends, reverse=True)[len(ends) // 2]
        # Only records of this epoch are counted; earlier ones are committed along with them.
        if committed <= self.high_watermark or committed <= role.epoch_start:
            return []
        self.high_watermark = committed
        return [m.HighWatermarkAdvanced(offset=committed), *self._wake(role)]

    def _wake(self, role: Leader) -> list[Effect]:
        """Responds to the fetches that wait, because there are records or a new high watermark."""
        waiting, role.waiting = role.waiting, []
        return self._respond_to_waiting(waiting)

    def _respond_to_waiting(self, waiting: list[tuple[m.Token, int]]) -> list[Effect]:
        return [
            m.RespondToFetch(
                token=token,
                epoch=self.epoch,
                leader_id=self.own.replica_id,
                high_watermark=self.high_watermark,
                offset=offset,
            )
            for token, offset in waiting
        ]

    def _fetch_wait_expired(self, event: m.FetchWaitExpired) -> list[Effect]:
        role = self.role
        if not isinstance(role, Leader):
            return []
        expired = [each for each in role.waiting if each[0] is event.token]
        role.waiting = [each for each in role.waiting if each[0] is not event.token]
        return self._respond_to_waiting(expired)

    def _fetch_response(
        self,
        event: m.FetchRequested,
        *,
        offset: int = -1,
        error: str = "",
        diverging: OffsetAndEpoch | None = None,
        snapshot: OffsetAndEpoch | None = None,
    ) -> m.RespondToFetch:
        return m.RespondToFetch(
            token=event.token,
            epoch=self.epoch,
            leader_id=self.leader_id,
            high_watermark=self.high_watermark,
            offset=offset,
            error=error,
            diverging=diverging,
            snapshot=snapshot,
        )

    def _fetch(self) -> list[Effect]:
        role = self.role
        if not isinstance(role, Follower) or role.is_fetching or role.is_writing or not role.is_settled:
            return []
        role.is_fetching = True
        return [
            m.SendFetch(
                to=role.leader_id,
                epoch=role.epoch,
                offset=self.log_end,
                last_fetched_epoch=last_epoch(self.epochs),
                high_watermark=self.high_watermark,
            )
        ]

    def _fetch_response_received(self, event: m.FetchResponseReceived, now: float) -> list[Effect]:
        role = self.role
        if not isinstance(role, Follower) or event.leader_id != role.leader_id or event.epoch != role.epoch:
            return []
        if role.is_writing or event.offset != self.log_end:
            return []  # a late response: another fetch of this epoch has brought the same records
        role.is_fetching = False
        if event.error:
            return []  # the shell fetches again after a while
        role.has_fetched = True
        role.deadline = now + self._settings.fetch_timeout_s
        if event.snapshot is not None:
            role.is_writing = True
            return [m.FetchSnapshot(leader_id=role.leader_id, epoch=role.epoch, snapshot=event.snapshot)]
        if event.diverging is not None:
            return self._go_back(role, event.diverging)
        if event.records:
            role.is_writing = True
            self._leader_high_watermark = max(self._leader_high_watermark, event.high_watermark)
            return [m.AppendFetched(records=event.records)]
        return [*self._follow_high_watermark(event.high_watermark), *self._fetch()]

    def _snapshot_requested(self, event: m.SnapshotRequested, now: float) -> list[Effect]:
        """Notes that a replica is alive: while it fetches a long snapshot it fetches no records."""
        role = self.role
        if isinstance(role, Leader) and event.epoch == role.epoch:
            progress = next((p for key, p in role.replicas.items() if is_same(key, event.replica)), None)
            if progress is not None:
                progress.last_fetch = now
                self._extend_check(role, now)
        return []

    def _snapshot_piece_fetched(self, event: m.SnapshotPieceFetched, now: float) -> list[Effect]:
        role = self.role
        if isinstance(role, Follower) and (role.leader_id, role.epoch) == (event.leader_id, event.epoch):
            role.deadline = max(role.deadline, now + self._settings.fetch_timeout_s)
        return []

    def _go_back(self, role: Follower, point: OffsetAndEpoch) -> list[Effect]:
        own = end_of(self.epochs, self.log_end, point.epoch)
        target = min(point.offset, own.offset) if own is not None and own.epoch == point.epoch else None
        if target is None:
            target = own.offset if own is not None else self.log_start
        assert target >= self.high_watermark, "what is committed is never truncated"
        role.is_writing = True
        self.history.truncate(target)
        return [m.TruncateLog(offset=target)]

    def _follow_high_watermark(self, leaders: int) -> list[Effect]:
        known = min(leaders, self.log_end)
        if known <= self.high_watermark:
            return []
        self.high_watermark = known
        return [m.HighWatermarkAdvanced(offset=known)]

    def _log_synced(self, event: m.LogSynced, now: float) -> list[Effect]:
        self.log_end = event.end_offset
        self.epochs = event.epochs
        role = self.role
        if isinstance(role, Leader):
            effects = self._advance(role)
            behind = any(offset < self.log_end for _, offset in role.waiting)
            return [*effects, *(self._wake(role) if behind else [])]
        if isinstance(role, Follower):
            role.is_writing = False
            role.deadline = max(role.deadline, now + self._settings.fetch_timeout_s)
            return [*self._follow_high_watermark(self._leader_high_watermark), *self._fetch()]
        return []

    def _fetch_request_failed(self, event: m.FetchRequestFailed) -> list[Effect]:
        role = self.role
        if isinstance(role, Follower) and (role.leader_id, role.epoch) == (event.leader_id, event.epoch):
            role.is_fetching = False
        return []  # the next fetch is sent when the shell's backoff has ended

    def _snapshot_fetch_failed(self, event: m.SnapshotFetchFailed) -> list[Effect]:
        role = self.role
        if isinstance(role, Follower) and (role.leader_id, role.epoch) == (event.leader_id, event.epoch):
            role.is_writing = False
        return self._fetch()

    def _snapshot_written(self, event: m.SnapshotWritten) -> list[Effect]:
        self.latest_snapshot = event.snapshot
        self.log_start = event.log_start
        return []

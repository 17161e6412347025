"""The shell of the metadata quorum: carries out the effects of `quorum.core`, and hands out committed records.

1. Effects are carried out in order. Writes go through one queue: the core gets an event when an election or records are
   synced.
2. The owner gets committed records in the order of the log, each once.
3. A write that fails halts the node, because the state of the disk is unknown. If the disk is full or no file can be
   opened, nothing was written: a follower waits, and a leader refuses the request.
4. A snapshot is fetched for the role that needs it, and written in the same queue: nothing is appended meanwhile, and
   an image that is newer than the snapshot does not go back to it.
5. The core gets a set of voters as soon as it is appended, and the addresses of nodes follow it.
6. When the connection to the leader breaks, its address is probed at once; if it is refused the leader is gone, and an
   election begins without waiting for a timeout.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TypeVar, assert_never

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.disks.disk_retry import DiskRetry
from strandline.broker.metadata.raft_client import RaftClient
from strandline.broker.metadata.raft_endpoints import Address, RaftEndpoints
from strandline.broker.metadata.raft_log import RESET_ADVICE, RaftLog, voters_of_snapshot
from strandline.broker.metadata.voter_records import voter_records
from strandline.broker.metadata.voter_upkeep import VoterUpkeep
from strandline.broker.tasks import TaskScope
from strandline.ports.clock import Clock
from strandline.ports.disk import Disk, is_full, lacks_files, passes
from strandline.ports.network import Network
from strandline.ports.process import Process
from strandline.ports.random import Random
from strandline.ports.workers import Workers
from strandline.quorum import messages as m
from strandline.quorum.core import Quorum
from strandline.quorum.messages import Effect, Event, OffsetAndEpoch
from strandline.quorum.roles import Follower, Role
from strandline.quorum.settings import QuorumSettings
from strandline.quorum.voters import Voter, VoterSet
from strandline.telemetry.events import Events
from strandline.telemetry.traffic import Traffic
from strandline.wire.codec import encode
from strandline.wire.records import control
from strandline.wire.records.framing import LEADER_CHANGE, control_batch, metadata_batch
from strandline.wire.schema import Message

T = TypeVar("T")

_FETCH_RETRY_S: Final = 0.02
_WARN_AGAIN_S: Final = 10.0


class QuorumListener(Protocol):
    """The owner of the node, which gets committed records and changes of leadership."""

    def committed(self, message: Message, end_offset: int) -> None: ...

    def published(self, end_offset: int) -> None: ...

    def snapshot_loaded(self, records: list[Message], end_offset: int) -> None: ...

    def leads(self, epoch: int) -> None: ...

    def resigned(self) -> None: ...

    def leader_changed(self, leader_id: int, epoch: int) -> None: ...


class _FetchedSnapshot(NamedTuple):
    snapshot: OffsetAndEpoch
    contents: bytes


class RaftNode:
    def __init__(
        self,
        *,
        disk: Disk,
        clock: Clock,
        random: Random,
        workers: Workers,
        network: Network,
        process: Process,
        events: Events,
        store: RaftLog,
        own: Voter,
        configured: VoterSet,
        addresses: RaftEndpoints,
        cluster_id: str,
        settings: QuorumSettings,
        listener: QuorumListener,
        joins_by_itself: bool = False,
    ) -> None:
        self.is_stopped = False
        self._warn_again_at = 0.0
        self._disk = disk
        self._clock = clock
        self._random = random
        self._workers = workers
        self._process = process
        self.events = events
        self.store = store
        self._own = own.key
        self.cluster_id = cluster_id
        self._listener = listener
        self.tasks = TaskScope(self._failed)
        self.core = Quorum(
            own=own,
            history=store.voter_history(configured),
            settings=settings,
            election=store.election,
            log=store.synced(),
            log_start=store.start_offset,
            snapshot=store.snapshot,
            jitter=lambda: random.below(1000) / 1000,
            now=clock.monotonic(),
        )
        self.addresses = addresses
        addresses.follow(self.core)
        self._peers = RaftClient(self, own.key, network, random, events, settings)
        self._upkeep = VoterUpkeep(
            self, self._peers, network, events, settings, joins_by_itself=joins_by_itself
        )
        self._is_discovering = False
        self._writes: deque[Effect | _FetchedSnapshot | None] = deque()
        self._writer: asyncio.Task[None] | None = None
        # Until there is room this node takes no new records, and goes on with everything else.
        self._disk_retry = DiskRetry(events, "the metadata log", lambda: self.is_stopped)
        self._timer: asyncio.TimerHandle | None = None
        self._applied = store.start_offset
        self.applied_ms = 0  # the time of the last applied record
        self._waiting: deque[tuple[int, int, asyncio.Future[None]]] = deque()  # end offset, epoch, future

    # Starting and stopping

    def start(self) -> None:
        if self.store.snapshot is not None:
            self._load_snapshot()
        self.step(m.NodeStarted())
        self._discover_if_needed()
        self._upkeep.start()

    def _discover_if_needed(self) -> None:
        """Starts to look for the leader, which all nodes but configured voters may have to find."""
        if not self._is_discovering and (self.core.has_dynamic_voters or not self.core.is_voter):
            self._is_discovering = True
            self.tasks.start(self._peers.discover())

    def _load_snapshot(self) -> None:
        from strandline.broker.metadata.raft_log import records_of_snapshot

        assert self.store.snapshot is not None
        records = list(records_of_snapshot(self.store.read_snapshot()))
        self._applied = self.store.snapshot.offset
        self._listener.snapshot_loaded(records, self._applied)

    async def stop(self) -> None:
        if self.is_leader and len(self.core.voters) > 1:
            self.step(m.ResignationRequested())
            await asyncio.sleep(0)
        self.is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._peers.close()
        if self._writer is not None:
            await self._writer
        await self.tasks.close()
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, "The controller is stopping."))
        await self._workers.run(self.store.sync_work().run, self._disk)
        self.store.close()

    def _failed(self, error: BaseException) -> None:
        import traceback

        self._process.halt("".join(traceback.format_exception(error)))

    # Called by the owner

    @property
    def is_leader(self) -> bool:
        return self.core.led_from is not None

    @property
    def traffic(self) -> Traffic:
        return self._peers.traffic

    @property
    def leader_id(self) -> int:
        return self.core.leader_id

    @property
    def leader_address(self) -> Address | None:
        """The leader's address; None if there is no leader, or its address is not known."""
        own = self.addresses.own
        if self.is_leader and own is not None:
            return Address(own.host, own.port)
        return self.addresses.of(self.leader_id)

    @property
    def is_stranger(self) -> bool:
        """True if a voter has responded that it belongs to another cluster."""
        return self._peers.is_stranger

    @property
    def kraft_version(self) -> int:
        """The committed level of kraft.version."""
        return self.core.voters_at(self._applied - 1)[0]

    @property
    def end_offset(self) -> int:
        return self.store.end_offset

    @property
    def applied_offset(self) -> int:
        return self._applied

    def append(self, records: tuple[Message, ...]) -> asyncio.Future[None]:
        """Appends in the leader's epoch; done when committed, NOT_CONTROLLER if leadership is lost before."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self.is_leader:
            future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))
            return future
        now_ms = self._clock.wall_ms()
        try:
            self.store.append(metadata_batch(records, self.end_offset, self.core.epoch, now_ms), now_ms, [])
        except OSError as error:
            if not passes(error):
                self._process.halt(f"the metadata log cannot be written: {error}")
            # The log has been cut back, so nothing has changed.
            why = "The controller's disk is full." if is_full(error) else f"Metadata: {error.strerror}."
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why) from error
        self._waiting.append((self.end_offset, self.core.epoch, future))
        self._write(None)
        return future

    async def settled(self) -> None:
        """Returns when all appended records are committed; raises NOT_CONTROLLER if leadership is lost before."""
        if self._waiting:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((self.end_offset, self.core.epoch, future))
            await future

    def _append(self, batch: bytes) -> None:
        try:
            changes: list[m.VotersAppended] = []
            self.store.append(batch, self._clock.wall_ms(), changes)
        except OSError as error:
            self._process.halt(f"the metadata log cannot be written: {error}")
            return
        self._tell_voters(changes)

    def _tell_voters(self, changes: list[m.VotersAppended]) -> None:
        for change in changes:
            ids = [key.replica_id for key in change.voters.keys]
            self.events.info("voters of the metadata quorum", voters=ids, offset=change.offset)
            self.step(change)
            self.addresses.voters_changed()
            self._discover_if_needed()

    # Events and effects

    def step(self, event: Event) -> None:
        """Hands the event to the core and carries out its effects; does nothing once the node is stopped."""
        if not self.is_stopped:
            self._do(self.core.step(event, self._clock.monotonic()))
            self._arm()

    def request(self, event_of: Callable[[asyncio.Future[Any]], Event]) -> asyncio.Future[Any]:
        """Steps with an event whose token is the future of its response."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.step(event_of(future))
        return future

    def fetch_expired(self, token: object) -> None:
        """Ends a fetch whose time is up, also on a node that has stopped."""
        self._do(self.core.step(m.FetchWaitExpired(token=token), self._clock.monotonic()))

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case m.PersistElection() | m.AppendFetched() | m.TruncateLog():
                    self._write(effect)
                case m.AppendLeaderChange():
                    self._append_leader_change(effect)
                case m.AppendVoters():
                    self._append_control(voter_records(effect.voters, effect.version), effect.epoch)
                case m.CheckVoter():
                    self.tasks.start(self._upkeep.check(effect.voter))
                case m.RespondToVote() | m.RespondToEpoch() | m.RespondToFetch() | m.RespondToVoterChange():
                    token: Any = effect.token
                    if not token.done():
                        token.set_result(effect)
                case m.SendVote():
                    self.tasks.start(self._peers.send_vote(effect))
                case m.SendBeginEpoch():
                    self.tasks.start(self._peers.send_begin_epoch(effect))
                case m.SendEndEpoch():
                    self.tasks.start(self._peers.send_end_epoch(effect))
                case m.SendFetch():
                    self.tasks.start(self._peers.send_fetch(effect))
                case m.FetchSnapshot():
                    self.tasks.start(self._fetch_snapshot(effect, self.core.role))
                case m.HighWatermarkAdvanced():
                    self._give_committed(effect.offset)
                case m.BecomeLeader():
                    self.events.info("leads the metadata quorum", epoch=effect.epoch)
                    self._listener.leader_changed(self._own.replica_id, effect.epoch)
                    self._listener.leads(effect.epoch)
                case m.StopLeading():
                    self._stop_leading()
                case m.FollowLeader():
                    self._listener.leader_changed(effect.leader_id, effect.epoch)
                case m.ProbeLeader():
                    self.tasks.start(self._peers.probe(effect.leader_id))
                case m.WarnOfEpoch():
                    self._warn_of_epoch(effect)
                case _:
                    assert_never(effect)

    def _warn_of_epoch(self, effect: m.WarnOfEpoch) -> None:
        now = self._clock.monotonic()
        if now < self._warn_again_at:
            return
        self._warn_again_at = now + _WARN_AGAIN_S
        if effect.is_used_up:
            self.events.error("no epoch is left for an election", epoch=effect.epoch, advice=RESET_ADVICE)
        else:
            self.events.warn("a peer's epoch is not believed", epoch=effect.epoch, own=self.core.epoch)

    def _append_leader_change(self, effect: m.AppendLeaderChange) -> None:
        message = control.LeaderChangeMessage(
            version=control.LEADER_CHANGE_VERSION,
            leader_id=self._own.replica_id,
            voters=tuple(control.Voter(voter_id=voter.replica_id) for voter in effect.voters),
            granting_voters=tuple(control.Voter(voter_id=voter_id) for voter_id in effect.granting),
        )
        records = [(LEADER_CHANGE, bytes(encode(message, control.LEADER_CHANGE_VERSION)))]
        if effect.recorded is not None:
            records += voter_records(effect.recorded, effect.version)
        self._append_control(records, effect.epoch)

    def _append_control(self, records: list[tuple[int, bytes]], epoch: int) -> None:
        self._append(control_batch(records, self.end_offset, epoch, self._clock.wall_ms()))
        self._write(None)

    def _stop_leading(self) -> None:
        self._listener.resigned()
        waiting, self._waiting = self._waiting, deque()
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, "Another node leads the quorum."))

    # Writing

    def _write(self, effect: Effect | _FetchedSnapshot | None) -> None:
        """Queues a write; None stands for records in the page cache that have to be synced."""
        self._writes.append(effect)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_all())

    async def _write_all(self) -> None:
        try:
            while self._writes:
                effect = self._writes.popleft()
                while effect is None and self._writes and self._writes[0] is None:
                    self._writes.popleft()
                await self._write_one(effect)
        except Exception as error:
            if not (self.is_stopped and isinstance(error, OSError) and passes(error)):
                self._failed(error)
        finally:
            self._writer = None

    async def _sync(self, work: Callable[..., None], *values: object) -> None:
        try:
            # If a file could not be opened, nothing was synced yet.
            await self._disk_retry.run(lambda: self._workers.run(work, *values), lacks_files)
        except OSError as error:
            self._process.halt(f"the metadata log cannot be synced: {error}")

    async def _write_one(self, effect: Effect | _FetchedSnapshot | None) -> None:
        if isinstance(effect, m.PersistElection):
            await self._disk_retry.run(lambda: self._write_election(effect.election))
            self.step(m.ElectionPersisted(election=effect.election))
            return
        if isinstance(effect, m.AppendFetched):
            changes: list[m.VotersAppended] = []
            await self._disk_retry.run(lambda: self._append_fetched(effect.records, changes))
            self._tell_voters(changes)
        elif isinstance(effect, m.TruncateLog):
            self.events.info("metadata log truncated", offset=effect.offset)
            try:
                self.store.truncate(effect.offset)
            except OSError as error:
                if not passes(error):
                    raise  # otherwise it is truncated, and its epochs are written before the next append
            self.addresses.voters_changed()
        elif isinstance(effect, _FetchedSnapshot):
            await self._disk_retry.run(lambda: self._workers.run(self.store.write_snapshot, *effect))
            self._snapshot_fetched(effect)
        work = self.store.sync_work()
        await self._sync(work.run, self._disk)
        self.store.synced_to(work.end_offset)
        self.step(self.store.synced(min(work.end_offset, self.store.end_offset)))

    async def _write_election(self, election: m.Election) -> None:
        try:
            await self._workers.run(self.store.write_election, election)
        except OSError as error:
            if passes(error):
                raise
            self._process.halt(f"the state of the metadata quorum cannot be written: {error}")

    async def _append_fetched(self, records: bytes, changes: list[m.VotersAppended]) -> None:
        self.store.append(records, self._clock.wall_ms(), changes)

    def _give_committed(self, high_watermark: int) -> None:
        applied = self._applied
        for end, message in self.store.messages(applied, high_watermark):
            if message is not None:
                self._listener.committed(message, end)
            applied = end
        self._applied = max(applied, high_watermark)
        self.applied_ms = self._clock.wall_ms()
        self._listener.published(self._applied)
        while self._waiting and self._waiting[0][0] <= high_watermark:
            _, _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    # Snapshots

    async def make_snapshot(self, records: list[Message], end_offset: int) -> None:
        """Writes a snapshot of an image with all committed records before `end_offset`, and drops the log before it."""
        known = self.store.snapshot
        if end_offset <= (0 if known is None else known.offset):
            return  # nothing is committed since
        snapshot = OffsetAndEpoch(end_offset, self.store.epoch_at(end_offset - 1))
        voters = self.core.voters_at(end_offset - 1)
        write = self.store.render_and_write_snapshot
        await self._workers.run(write, snapshot, records, self._clock.wall_ms(), *voters)
        self._adopt(snapshot)

    def _adopt(self, snapshot: OffsetAndEpoch) -> bool:
        """Adopts a written snapshot; returns False if the same or a later one has come meanwhile, which stays."""
        known = self.store.snapshot
        if known is not None and known >= snapshot:
            if known != snapshot:
                self.store.remove_snapshot(snapshot)
            return False
        self.store.adopt_snapshot(snapshot)
        self.step(m.SnapshotWritten(snapshot=snapshot, log_start=self.store.start_offset))
        return True

    async def _fetch_snapshot(self, effect: m.FetchSnapshot, role: Role) -> None:
        assert isinstance(role, Follower)
        contents = None
        try:
            contents = await self._peers.download(effect, lambda: self.core.role is role)
        except (OSError, KafkaError) as error:
            self.events.warn("snapshot not fetched", error=error)
            await asyncio.sleep(_FETCH_RETRY_S)
        if self.core.role is not role:
            return  # the next leader, or this one if it is found again, names a snapshot again
        if contents is not None:
            self._write(_FetchedSnapshot(effect.snapshot, contents))
        else:
            self.step(m.SnapshotFetchFailed(leader_id=effect.leader_id, epoch=effect.epoch))

    def _snapshot_fetched(self, fetched: _FetchedSnapshot) -> None:
        """Adopts a snapshot that is synced; a node that stops meanwhile finds it at its next start."""
        if self.is_stopped or not self._adopt(fetched.snapshot):
            return
        version, voters = voters_of_snapshot(fetched.contents)
        self.step(m.SnapshotAdopted(snapshot=fetched.snapshot, version=version, voters=voters))
        self.addresses.voters_changed()
        if fetched.snapshot.offset > self._applied:
            self._load_snapshot()

    # Time

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self.core.next_deadline()
        if deadline is not None and not self.is_stopped and deadline < 1e15:
            delay = max(deadline - self._clock.monotonic(), 0.001)
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.step(m.TimePassed())
